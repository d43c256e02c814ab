#include "server/profiling/modeled_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "server/profiling/curve_family.h"

namespace perseus::profiling {
namespace {

struct ValueRange {
  double least, most;
};
// planning/partitioner/gpu_model.cpp assumes 0.12 to 0.3 of static power, knees from 0.63 to 0.79 and floors from 0.80
// to 0.86. Above 1, the limit lies beyond the highest clock.
constexpr ValueRange kComputeShare{0, 1}, kStaticShare{0.1, 0.35}, kVoltageKnee{0.6, 0.85}, kVoltageFloor{0.75, 0.9},
    kPowerLimit{0.78, 1.06};
constexpr double kMemoryActivity = 0.7;  ///< as in gpu_model.cpp
constexpr std::uint64_t kModelSeed = 20240917;

/// A GPU, relative to its state at the measured clock.
struct GpuShape {
  double static_share = 0, knee = 0, floor = 0;
  double limit = 1;  ///< share of the measured clock at which it really runs, held by its power limit

  [[nodiscard]] double dynamic_power(double share) const {
    const double voltage = std::max(floor, 1 - (1 - share) * (1 - floor) / (1 - knee));
    return share * voltage * voltage;
  }
};

struct TimeEnergy {
  double time = 1, energy = 1;  ///< as multiples of the measured ones
};

TimeEnergy at_share(double clock_share, double compute_share, const GpuShape& gpu) {
  const double share = std::min(clock_share, gpu.limit);
  const double compute = compute_share * gpu.limit / share, memory = 1 - compute_share;
  const double time = compute + memory;
  const double activity = (compute + kMemoryActivity * memory) / time;
  const double activity_measured = compute_share + kMemoryActivity * memory;
  const double dynamic = gpu.dynamic_power(share) / gpu.dynamic_power(gpu.limit) * activity / activity_measured;
  return {time, time * (gpu.static_share + (1 - gpu.static_share) * dynamic)};
}

/// One value for each draw, each in its own part of the range, in random order: few draws cover the range.
std::vector<double> spread_over(const ValueRange& range, int count, std::mt19937_64& engine) {
  std::vector<double> values;
  for (int k = 0; k < count; ++k) {
    values.push_back(range.least + (range.most - range.least) * (k + uniform(engine)) / count);
  }
  for (int k = count - 1; k > 0; --k) {
    std::swap(values[k], values[static_cast<std::size_t>(uniform(engine) * (k + 1))]);
  }
  return values;
}

std::vector<GpuShape> gpu_shapes(int count, std::mt19937_64& engine) {
  std::vector<GpuShape> shapes(count);
  const auto set = [&](double GpuShape::*member, const ValueRange& range) {
    const std::vector<double> values = spread_over(range, count, engine);
    for (int k = 0; k < count; ++k) shapes[k].*member = values[k];
  };
  set(&GpuShape::static_share, kStaticShare);
  set(&GpuShape::knee, kVoltageKnee);
  set(&GpuShape::floor, kVoltageFloor);
  set(&GpuShape::limit, kPowerLimit);
  for (GpuShape& shape : shapes) shape.limit = std::min(1.0, shape.limit);
  return shapes;
}

/// The measured clock, and the GPU's clocks below it.
Result<std::vector<Megahertz>> modeled_clocks(const model::ProfileEntry& entry, const std::vector<Megahertz>& clocks) {
  const std::string name = fmt::format("stage {}, {}", entry.stage, entry.instruction);
  if (entry.measurements.size() != 1) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: {} clocks; only a profile of one clock is completed by a model", name,
                             entry.measurements.size())};
  }
  const Megahertz measured = entry.measurements.front().clock;
  std::vector<Megahertz> all{measured};
  if (measured == Megahertz(0)) return all;
  for (const Megahertz clock : clocks) {
    const double share = static_cast<double>(clock.value()) / measured.value();
    if (share < 1 && share >= kLowestModeledShare) all.push_back(clock);
  }
  if (all.size() > 1) return all;
  return Error{ErrorCode::invalid_input,
               fmt::format("{}: measured at {} MHz; the GPU has no clock between that and its "
                           "half",
                           name, measured.value())};
}

/// Sets the entry to the means and standard deviations of the draws.
void set_to_means(model::ProfileEntry& entry, const std::vector<model::Profile>& draws, std::size_t place) {
  const auto count = static_cast<double>(draws.size());
  for (std::size_t i = 1; i < entry.measurements.size(); ++i) {
    double time = 0, energy = 0, time_squares = 0, energy_squares = 0;
    for (const model::Profile& draw : draws) {
      time += draw.entries[place].measurements[i].time.value() / count;
      energy += draw.entries[place].measurements[i].energy.value() / count;
    }
    for (const model::Profile& draw : draws) {
      const model::Measurement& m = draw.entries[place].measurements[i];
      time_squares += (m.time.value() - time) * (m.time.value() - time);
      energy_squares += (m.energy.value() - energy) * (m.energy.value() - energy);
    }
    model::Measurement& mean = entry.measurements[i];
    mean.time = Seconds(time), mean.energy = Joules(energy);
    mean.time_stddev = Seconds(std::sqrt(time_squares / std::max(count - 1, 1.0)));
    mean.energy_stddev = Joules(std::sqrt(energy_squares / std::max(count - 1, 1.0)));
  }
}

}  // namespace

Result<ModeledProfile> model_clocks(const model::Profile& measured, const std::vector<Megahertz>& clocks, int draws) {
  ModeledProfile result{measured, {}};
  std::map<std::string, std::vector<double>> compute_shares;  // per instruction and draw
  std::mt19937_64 engine(kModelSeed);
  const std::vector<GpuShape> shapes = gpu_shapes(draws, engine);
  for (model::ProfileEntry& entry : result.profile.entries) {
    const auto own = modeled_clocks(entry, clocks);
    if (!own) return own.error();
    for (std::size_t i = 1; i < own->size(); ++i) {
      entry.measurements.push_back(entry.measurements.front());
      entry.measurements.back().clock = (*own)[i];
    }
    if (!compute_shares.contains(entry.instruction)) {
      compute_shares[entry.instruction] = spread_over(kComputeShare, draws, engine);
    }
  }
  for (int k = 0; k < draws; ++k) {
    model::Profile& draw = result.draws.emplace_back(result.profile);
    for (model::ProfileEntry& entry : draw.entries) {
      const model::Measurement first = entry.measurements.front();
      for (std::size_t i = 1; i < entry.measurements.size(); ++i) {
        model::Measurement& m = entry.measurements[i];
        const double share = static_cast<double>(m.clock.value()) / first.clock.value();
        const TimeEnergy ratio = at_share(share, compute_shares[entry.instruction][k], shapes[k]);
        m.time = ratio.time * first.time;
        m.energy = ratio.energy * first.energy;
      }
    }
  }
  for (std::size_t e = 0; e < result.profile.entries.size(); ++e) {
    set_to_means(result.profile.entries[e], result.draws, e);
  }
  return result;
}

}  // namespace perseus::profiling
