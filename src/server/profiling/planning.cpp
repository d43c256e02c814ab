#include "server/profiling/planning.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planning/model/build_dag.h"

namespace perseus::profiling {
namespace {

// Shrinks a replica's offset, which has a standard error: only the part of the offsets' spread beyond noise counts.
double shrunk_factor(const std::vector<Running>& offsets, bool slowest) {
  if (offsets.size() < 2) return 1;
  double squares = 0, noise = 0;
  int counted = 0;
  for (const Running& offset : offsets) {
    if (offset.count == 0) continue;
    squares += offset.mean * offset.mean;
    // With one window there is no spread to observe: the offset then counts as noise.
    noise += offset.count > 1 ? offset.squares / (offset.count - 1) / offset.count : offset.mean * offset.mean;
    ++counted;
  }
  if (counted < 2 || squares <= 0) return slowest ? 1 : static_cast<double>(offsets.size());
  const double believed = std::max(0.0, 1 - noise / squares);
  double most = 0, sum = 0;
  for (const Running& offset : offsets) {
    most = std::max(most, believed * offset.mean);
    sum += std::exp(believed * offset.mean);
  }
  return slowest ? std::exp(most) : sum;
}

model::Measurement measurement(const ProfiledType& type, int clock, double log_time, double log_energy,
                               const ReplicaFactors& factors) {
  return {type.clocks[clock],
          Seconds(std::exp(log_time) * factors.time),
          Joules(std::exp(log_energy) * factors.energy),
          {},
          {},
          1};
}

}  // namespace

int lowest_index(const ProfiledType& type, double share) {
  int index = 0;
  while (index + 1 < static_cast<int>(type.clocks.size()) &&
         type.clocks[index + 1].value() >= share * type.clocks.front().value()) {
    ++index;
  }
  return index;
}

std::vector<ClockRange> clock_ranges(const Layout& layout, const Samples& samples, double lowest_clock_share) {
  const auto measured = [](const Cell& cell) { return cell.log_time.count > 0; };
  std::map<model::Instruction, Megahertz> lowest_of;  // in any stage: all share the instruction's curve
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    for (std::size_t c = 0; c < type.clocks.size(); ++c) {
      if (!measured(samples.cells(t)[c])) continue;
      const auto found = lowest_of.try_emplace(type.instruction, type.clocks[c]).first;
      found->second = std::min(found->second, type.clocks[c]);
    }
  }
  std::vector<ClockRange> ranges;
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    const std::vector<Cell>& cells = samples.cells(t);
    const bool varied = std::ranges::count_if(cells, measured) > 1;
    ClockRange range;
    range.first = static_cast<int>(std::ranges::find_if(cells, measured) - cells.begin());
    for (int c = 0; c < static_cast<int>(cells.size()); ++c) {
      if (measured(cells[c]) || (varied && type.clocks[c] >= lowest_of[type.instruction])) range.last = c;
    }
    if (range.first == static_cast<int>(cells.size())) range.first = 0;
    const double lowest = static_cast<double>(type.clocks[range.last].value()) / std::max(1, type.clocks[0].value());
    // If all samples at lower clocks were rejected, the type starts again.
    const double share = varied ? lowest - kReachShare : kFirstShare;
    const int next = std::min(range.last + 1, lowest_index(type, lowest_clock_share));
    range.reach = std::max({range.last, next, lowest_index(type, std::max(lowest_clock_share, share))});
    ranges.push_back(range);
  }
  return ranges;
}

std::vector<ReplicaFactors> replica_factors(const Layout& layout, const Samples& samples) {
  std::vector<ReplicaFactors> factors;
  for (int t = 0; t < layout.num_types(); ++t) {
    factors.push_back(
        {shrunk_factor(samples.replica_times(t), true), shrunk_factor(samples.replica_energies(t), false)});
  }
  return factors;
}

Result<PlanningProblem> PlanningProblem::build(const Layout& layout, const Samples& samples,
                                               const TimeEnergyModel& model, double lowest_clock_share) {
  PlanningProblem problem;
  problem.ranges_ = clock_ranges(layout, samples, lowest_clock_share);
  problem.factors_ = replica_factors(layout, samples);
  const auto profile_to = [&](int ClockRange::*last) {
    model::Profile profile;
    profile.accelerators.assign(layout.job.schedule.num_stages, 1);
    for (int t = 0; t < layout.num_types(); ++t) {
      const ProfiledType& type = layout.types[t];
      profile.accelerators[type.stage] = layout.replicas(type.rank);
      if (samples.cells(t).front().log_time.count == 0 && !type.has_clock()) continue;
      model::ProfileEntry entry{type.stage, std::string(model::name_of(type.instruction)), {}};
      for (int c = problem.ranges_[t].first; c <= problem.ranges_[t].*last; ++c) {
        entry.measurements.push_back(
            measurement(type, c, model.log_time(t).mean[c], model.log_energy(t).mean[c], problem.factors_[t]));
      }
      profile.entries.push_back(std::move(entry));
    }
    return profile;
  };
  const model::PipelineCosts costs{model.blocking_power(), layout.job.transfer_latency, layout.job.blocking_transfers,
                                   layout.job.serial_transfers};
  auto mean = model::build_dag(profile_to(&ClockRange::last), layout.job.schedule, costs);
  if (!mean) return mean.error();
  auto reaching = model::build_dag(profile_to(&ClockRange::reach), layout.job.schedule, costs);
  if (!reaching) return reaching.error();
  problem.mean_ = std::move(*mean);
  problem.reaching_ = std::move(*reaching);
  for (const model::ComputationType& dag_type : problem.mean_.types) {
    for (int t = 0; t < layout.num_types(); ++t) {
      if (layout.types[t].stage == dag_type.stage &&
          model::name_of(layout.types[t].instruction) == dag_type.instruction) {
        problem.profiled_type_.push_back(t);
      }
    }
  }
  PERSEUS_CHECK(problem.profiled_type_.size() == problem.mean_.types.size(), "a type that was not profiled");
  return problem;
}

std::vector<model::ComputationDag> PlanningProblem::draws(int count, const TimeEnergyModel& model,
                                                          std::mt19937_64& engine) const {
  std::vector<model::ComputationDag> dags(count, reaching_);
  const auto draws = model.draws(count, engine);
  for (int k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < dags[k].types.size(); ++i) {
      const int t = profiled_type_[i];
      std::vector<model::Measurement>& options = dags[k].types[i].options;
      for (std::size_t o = 0; o < options.size(); ++o) {
        const std::size_t clock = static_cast<std::size_t>(ranges_[t].first) + o;
        options[o].time = Seconds(std::exp(draws[k].log_time[t][clock]) * factors_[t].time);
        options[o].energy = Joules(std::exp(draws[k].log_energy[t][clock]) * factors_[t].energy);
      }
    }
  }
  return dags;
}

}  // namespace perseus::profiling
