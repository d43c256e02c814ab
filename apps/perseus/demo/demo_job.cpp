#include "demo/demo_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <vector>

#include "io/formats/profile_csv.h"
#include "plan/pipeline.h"
#include "planning/checker/plan_run.h"
#include "planning/model/build_dag.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/make_schedule.h"
#include "planning/model/profile.h"
#include "planning/model/reference_plans.h"
#include "simulation/replay/simulated_ranks.h"

namespace perseus::cli {
namespace {

const std::string kSampleName = "sample_profile.csv";
// From data/README.md about the sample's model: its blocking power, and weight gradients as long as input gradients.
constexpr double kSampleBlockingPower_w = 90, kInputGradientShare = 0.5;

/// The most similar pipeline of that many stages: stage s of n is the one at the same relative position.
model::Profile with_stages(const model::Profile& profile, int stages) {
  model::Profile result;
  const int given = profile.num_stages();
  for (int s = 0; s < stages; ++s) {
    const int like = stages > 1 ? static_cast<int>(std::lround(double(s) * (given - 1) / (stages - 1))) : 0;
    result.accelerators.push_back(profile.accelerators[like]);
    for (const model::ProfileEntry& entry : profile.entries) {
      if (entry.stage == like) result.entries.push_back({s, entry.instruction, entry.measurements});
    }
  }
  return result;
}

/// All computations take `scale` times as long, at the same power.
void stretch(model::Profile& profile, double scale) {
  for (model::ProfileEntry& entry : profile.entries) {
    for (model::Measurement& m : entry.measurements) {
      m.time = scale * m.time;
      m.energy = scale * m.energy;
      m.time_stddev = scale * m.time_stddev;
      m.energy_stddev = scale * m.energy_stddev;
    }
  }
}

/// Iterations of 0.67 s at most, but no computation below a millisecond, which the simulation keeps less well.
double default_scale(const DemoJob& job) {
  Seconds shortest = job.all_max_time;
  for (const model::ComputationType& type : job.dag.types) {
    for (const model::Measurement& m : type.options) shortest = std::min(shortest, m.time);
  }
  return std::min(kMostDefaultScale, std::max(kDefaultIteration / job.all_max_time, Seconds(0.001) / shortest));
}

bool splits_backward(const model::Schedule& schedule) {
  const auto is_half = [](const model::Action& action) {
    return action.instruction == model::Instruction::weight_gradient;
  };
  return std::ranges::any_of(schedule.ranks, [&](const auto& rank) { return std::ranges::any_of(rank, is_half); });
}

Status check_size(const DemoOptions& o, int ranks) {
  if (ranks * o.replicas <= kMostWorkers) return Ok{};
  return Error{ErrorCode::usage, fmt::format("{} ranks in each of {} replicas make {} worker processes; at most {}",
                                             ranks, o.replicas, ranks * o.replicas, kMostWorkers)};
}

Result<model::Schedule> schedule_of(const DemoOptions& o, int stages, int& chunks) {
  const int fixed = model::chunks_fixed_by(o.schedule);
  chunks = fixed != 0 ? fixed : 2;
  if (stages % chunks != 0) {
    return Error{ErrorCode::usage,
                 fmt::format("{} stages cannot be divided among ranks of {} chunks each", stages, chunks)};
  }
  return model::make_schedule(o.schedule, {stages / chunks, kMicrobatches, chunks});
}

}  // namespace

std::string profile_file_of(const DemoOptions& o) {
  return o.profile.empty() ? kSampleName : std::filesystem::path(o.profile).filename().string();
}

Result<DemoJob> demo_job(const DemoOptions& o) {
  const bool is_sample = o.profile.empty();
  auto profile =
      is_sample ? formats::parse_profile_csv(sample_profile_text(), kSampleName) : formats::read_profile_csv(o.profile);
  if (!profile) return profile.error();
  DemoJob job;
  const auto schedule = schedule_of(o, o.stages.value_or(profile->num_stages()), job.chunks);
  if (!schedule) return schedule.error();
  if (Status small = check_size(o, schedule->num_ranks()); !small) return small.error();
  const Status counted =
      check_transfer_count(o.transfer_latency, {*schedule}, {ErrorCode::usage, "--transfer-latency"});
  if (!counted) return counted.error();
  job.backward_was_split = splits_backward(*schedule) && profile->find(0, "weight_gradient") == nullptr;
  if (job.backward_was_split) {
    profile = model::split_backward(*std::move(profile), kInputGradientShare);
    if (!profile) return profile.error();
  }
  job.profile = o.stages ? with_stages(*profile, *o.stages) : *std::move(profile);
  job.blocking_power = is_sample ? Watts(kSampleBlockingPower_w) : model::guessed_blocking_power(job.profile);
  const auto set_dag = [&](const model::TransferLatency& transfers) -> Status {
    auto dag = model::build_dag(job.profile, *schedule, {job.blocking_power, transfers, false});
    if (!dag) return dag.error();
    job.dag = *std::move(dag);
    job.all_max_time = checker::run_plan(job.dag, model::all_maximum_clock(job.dag)).makespan;
    return Ok{};
  };
  if (Status made = set_dag({}); !made) return made.error();
  job.time_scale = o.time_scale.value_or(default_scale(job));
  stretch(job.profile, job.time_scale);
  if (Status made = set_dag(o.transfer_latency); !made) return made.error();
  return job;
}

double power_limit_for(const model::ComputationDag& dag, double slowdown) {
  const model::Plan all_max = model::all_maximum_clock(dag);
  const double free_s = checker::run_plan(dag, all_max).makespan.value();
  std::set<double> different;
  for (const model::ComputationType& type : dag.types) {
    for (const model::Measurement& m : type.options) different.insert(std::ceil((m.energy / m.time).value() + 0.5));
  }
  const std::vector<double> limits(different.begin(), different.end());
  const auto slowdown_at = [&](double limit_w) {
    model::Plan capped = all_max;
    for (std::size_t i = 0; i < capped.size(); ++i) {
      const model::ComputationType& type = dag.type_of(static_cast<int>(i));
      capped[i] = static_cast<std::uint16_t>(replay::option_under_limit(type, capped[i], Watts(limit_w)));
    }
    return checker::run_plan(dag, capped).makespan.value() / free_s;
  };
  // The lower the limit, the slower.
  const auto enough =
      std::ranges::partition_point(limits, [&](double limit_w) { return slowdown_at(limit_w) > slowdown; });
  if (enough == limits.begin()) return limits.front();
  if (enough == limits.end()) return limits.back();
  const double below = *(enough - 1), above = *enough;
  return slowdown_at(below) - slowdown < slowdown - slowdown_at(above) ? below : above;
}

bool apply_clocks(const model::ComputationDag& dag, int rank, const boost::json::array& clocks, model::Plan& plan) {
  const std::vector<int>& order = dag.rank_order[rank];
  if (clocks.size() != order.size()) return false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto* pair = clocks[i].if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[1].is_number()) return false;
    const int mhz = static_cast<int>((*pair)[1].to_number<double>());
    const std::vector<model::Measurement>& options = dag.type_of(order[i]).options;
    const auto option = std::ranges::find(options, Megahertz(mhz), &model::Measurement::clock);
    if (option == options.end()) return false;
    plan[order[i]] = static_cast<std::uint16_t>(option - options.begin());
  }
  return true;
}

}  // namespace perseus::cli
