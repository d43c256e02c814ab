#include "planning/checker/profile_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "planning/checker/plan_run.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/reference_plans.h"

namespace perseus::checker {
namespace {

/// The measurements that the profile, or a draw of it, has for a type, derived if it lacks them; nothing if
/// impossible.
std::vector<model::Measurement> measured(const model::ComputationType& type, const model::Profile& profile,
                                         const model::Profile& planned_with) {
  if (const model::ProfileEntry* entry = profile.find(type.stage, type.instruction)) return entry->measurements;
  if (type.instruction == "recompute" || type.instruction == "pure_backward") {
    const Result<model::RecomputeSplit> split = model::split_recompute(profile, type.stage);
    if (!split) return {};
    return (type.instruction == "recompute" ? split->recompute : split->pure_backward).measurements;
  }
  const bool is_input = type.instruction == "input_gradient";
  if (!is_input && type.instruction != "weight_gradient") return {};
  const model::ProfileEntry* backward = planned_with.find(type.stage, "backward");
  if (backward == nullptr) return {};
  const double share = type.options.front().time / backward->measurements.front().time;
  const Result<model::Profile> split = model::split_backward(profile, is_input ? share : 1 - share);
  const model::ProfileEntry* entry = split ? split->find(type.stage, type.instruction) : nullptr;
  return entry == nullptr ? std::vector<model::Measurement>{} : entry->measurements;
}

std::pair<double, double> mean_and_stddev(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / std::max(count - 1, 1.0))};
}

}  // namespace

std::vector<std::string> check_against_profile(const model::ComputationDag& dag, const model::Profile& profile,
                                               double tolerance) {
  std::vector<std::string> findings;
  const auto differ = [&](double a, double b) {
    return std::abs(a - b) > tolerance * std::max(std::abs(a), std::abs(b));
  };
  for (const model::ComputationType& type : dag.types) {
    const std::string name = fmt::format("stage {} {}", type.stage, type.instruction);
    const std::vector<model::Measurement> wanted = measured(type, profile, profile);
    if (wanted.empty()) {
      findings.push_back(fmt::format("{}: not in the profile", name));
      continue;
    }
    for (const model::Measurement& option : type.options) {
      const auto found = std::ranges::find(wanted, option.clock, &model::Measurement::clock);
      if (found == wanted.end()) {
        findings.push_back(fmt::format("{}: the profile has no measurement at {} MHz", name, option.clock.value()));
      } else if (differ(option.time.value(), found->time.value()) ||
                 differ(option.energy.value(), found->energy.value())) {
        findings.push_back(fmt::format("{} at {} MHz: {} s, {} J; the profile has {} s, {} J", name,
                                       option.clock.value(), option.time.value(), option.energy.value(),
                                       found->time.value(), found->energy.value()));
      } else if (differ(option.time_stddev.value(), found->time_stddev.value()) ||
                 differ(option.energy_stddev.value(), found->energy_stddev.value()) ||
                 option.samples != found->samples) {
        findings.push_back(
            fmt::format("{} at {} MHz: spreads {} s, {} J of {} samples; the profile has {} s, {} J of {}", name,
                        option.clock.value(), option.time_stddev.value(), option.energy_stddev.value(), option.samples,
                        found->time_stddev.value(), found->energy_stddev.value(), found->samples));
      }
    }
    for (const model::Measurement& m : wanted) {
      if (std::ranges::find(type.options, m.clock, &model::Measurement::clock) != type.options.end()) continue;
      findings.push_back(fmt::format("{}: the profile's {} MHz is not among the options", name, m.clock.value()));
    }
  }
  return findings;
}

std::vector<std::string> check_expected(const model::ComputationDag& dag, const model::Frontier& frontier,
                                        const model::Profile& profile, const std::vector<model::Profile>& draws,
                                        std::size_t most_points, double tolerance) {
  struct Expected {
    std::string name;
    const model::Plan* plan;
    model::ProfileNoise claimed;
    std::vector<double> time_s, energy_j;
  };
  const model::Plan highest = model::all_maximum_clock(dag);
  std::vector<Expected> all{{"everything at maximum clock", &highest, frontier.maximum_clock_noise, {}, {}}};
  const std::size_t points = frontier.points.size(), count = std::min(points, most_points);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t point = i * points / count;
    all.push_back({fmt::format("point {}", point), &frontier.points[point].plan, frontier.points[point].noise, {}, {}});
  }
  if (std::ranges::all_of(all, [](const Expected& e) { return e.claimed == model::ProfileNoise{}; })) return {};
  if (draws.empty()) return {"the plans claim times of a noisy profile; the profile is not noisy"};
  for (const model::Profile& draw : draws) {
    model::ComputationDag drawn = dag;
    for (model::ComputationType& type : drawn.types) {
      const std::vector<model::Measurement> options = measured(type, draw, profile);
      if (options.size() != type.options.size()) return {};  // check_against_profile() reports that
      for (std::size_t i = 0; i < options.size(); ++i) {
        type.options[i].time = options[i].time;
        type.options[i].energy = options[i].energy;
      }
    }
    PlanRunner runner(drawn);
    for (Expected& one : all) {
      const PlanRun& run = runner.run(*one.plan);
      one.time_s.push_back(run.makespan.value());
      one.energy_j.push_back(run.energy.value());
    }
  }
  std::vector<std::string> findings;
  PlanRunner of_means(dag);
  for (const Expected& one : all) {
    const auto [time_s, time_stddev_s] = mean_and_stddev(one.time_s);
    const auto [energy_j, energy_stddev_j] = mean_and_stddev(one.energy_j);
    const double lateness_s = time_s - of_means.run(*one.plan).makespan.value();
    const auto compare = [&](const char* quantity, double claimed, double recomputed, double scale) {
      if (std::abs(claimed - recomputed) <= tolerance * scale) return;
      findings.push_back(fmt::format("{}: {} is {}; from the profile: {}", one.name, quantity, claimed, recomputed));
    };
    compare("lateness_s", one.claimed.lateness.value(), lateness_s, time_s);
    compare("time_stddev_s", one.claimed.time_stddev.value(), time_stddev_s, time_s);
    compare("energy_stddev_j", one.claimed.energy_stddev.value(), energy_stddev_j, energy_j);
    if (one.claimed.saving_stddev == 0) continue;  // a file of an earlier version does not claim one
    std::vector<double> share;
    for (std::size_t k = 0; k < draws.size(); ++k) share.push_back(one.energy_j[k] / all.front().energy_j[k]);
    compare("saving_stddev", one.claimed.saving_stddev, mean_and_stddev(share).second, 1);
  }
  return findings;
}

}  // namespace perseus::checker
