#include "server/profiling/pooled_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/median.h"
#include "server/profiling/curve_family.h"

namespace perseus::profiling {
namespace {

constexpr std::size_t kFewestClocks = 3;
constexpr std::uint64_t kSeed = 14;
/// Candidates, as shares of the bound on the noise.
constexpr double kShares[] = {1, 0.5, 0.25, 0.125};

/// Scale of the draws' distance from the mean relative to the posterior, which takes the fitted roughness as known.
/// With 1, too few of the real times lie within two standard deviations (docs/measurements/noise.md).
constexpr double kUnknownRoughness = 1.5;

/// The entries of one instruction, whose curves resemble each other.
struct Family {
  std::vector<model::ProfileEntry*> members;
  std::vector<Megahertz> grid;  ///< all their clocks, highest first
};

/// Logarithms of one quantity, per member and clock of the member.
using Values = std::vector<std::vector<double>>;

std::vector<Family> families_of(model::Profile& profile) {
  std::map<std::string, Family> by_name;
  for (model::ProfileEntry& entry : profile.entries) {
    const std::vector<model::Measurement>& measured = entry.measurements;
    const bool whole = std::ranges::all_of(
        measured, [](const model::Measurement& m) { return m.clock > Megahertz(0) && m.energy > Joules(0); });
    if (measured.size() < kFewestClocks || !whole) continue;
    Family& family = by_name[entry.instruction];
    family.members.push_back(&entry);
    for (const model::Measurement& m : measured) family.grid.push_back(m.clock);
  }
  std::vector<Family> families;
  for (auto& [name, family] : by_name) {
    std::ranges::sort(family.grid, std::greater{});
    family.grid.erase(std::unique(family.grid.begin(), family.grid.end()), family.grid.end());
    families.push_back(std::move(family));
  }
  return families;
}

double log_clock(Megahertz clock, Megahertz highest) {
  return std::log(static_cast<double>(clock.value()) / highest.value());
}

double stddev_of(std::vector<double> absolute) {
  return absolute.empty() ? 0 : kStddevPerMedianDistance * median(std::move(absolute));
}

/// Noise of a mean: distance from the line through its two neighbors. Curvature counts as noise, so this is an upper
/// bound.
double bound_on_noise(const Family& family, const Values& values) {
  std::vector<double> off;
  for (std::size_t m = 0; m < family.members.size(); ++m) {
    const std::vector<model::Measurement>& measured = family.members[m]->measurements;
    for (std::size_t i = 1; i + 1 < measured.size(); ++i) {
      const auto at = [&](std::size_t j) { return log_clock(measured[j].clock, measured.front().clock); };
      const double share = (at(i) - at(i + 1)) / (at(i - 1) - at(i + 1));
      const double residual = values[m][i] - share * values[m][i - 1] - (1 - share) * values[m][i + 1];
      off.push_back(std::abs(residual) / std::sqrt(1 + share * share + (1 - share) * (1 - share)));
    }
  }
  return stddev_of(std::move(off));
}

/// With widely spaced clocks, more of a curve's curvature and steps would count as noise.
double least_estimated_noise(const Family& family) {
  const bool dense = std::ranges::all_of(
      family.members, [](const model::ProfileEntry* entry) { return entry->measurements.size() >= kManyClocks; });
  return dense ? kLeastEstimatedNoise : kLeastEstimatedNoiseOfFewClocks;
}

CurveFamily fitted(const Family& family, const Values& values, double center, const Values& variance) {
  std::vector<CurvePosition> positions;
  for (const Megahertz clock : family.grid) positions.push_back({log_clock(clock, family.grid.front()), 0});
  std::vector<Observations> members;
  for (std::size_t m = 0; m < family.members.size(); ++m) {
    const std::vector<model::Measurement>& measured = family.members[m]->measurements;
    Observations observed{
        Matrix::Zero(static_cast<int>(measured.size()), static_cast<int>(positions.size())), {}, variance[m]};
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const auto place = std::ranges::find(family.grid, measured[i].clock) - family.grid.begin();
      observed.design(static_cast<int>(i), static_cast<int>(place)) = 1;
      observed.value.push_back(values[m][i] - center);
    }
    members.push_back(std::move(observed));
  }
  return {std::move(positions), std::move(members)};
}

/// Noise of single samples; nothing without repeats.
std::optional<double> noise_of_repeats(const Family& family, bool of_time) {
  double squares = 0, freedom = 0;
  for (const model::ProfileEntry* entry : family.members) {
    for (const model::Measurement& m : entry->measurements) {
      if (m.samples < 2) continue;
      const double relative = of_time ? m.time_stddev / m.time : m.energy_stddev / m.energy;
      squares += relative * relative * (m.samples - 1);
      freedom += m.samples - 1;
    }
  }
  if (freedom == 0) return std::nullopt;
  return std::sqrt(squares / freedom);
}

/// Variances of the means, given their sample counts and the noise of a single sample.
Values variances(const Family& family, double noise) {
  Values all;
  for (const model::ProfileEntry* entry : family.members) {
    std::vector<double>& of_entry = all.emplace_back();
    for (const model::Measurement& m : entry->measurements) of_entry.push_back(noise * noise / std::max(m.samples, 1));
  }
  return all;
}

double smallest_stddev(const Values& variance) {
  double least = INFINITY;
  for (const auto& of_entry : variance) {
    for (const double v : of_entry) least = std::min(least, std::sqrt(v));
  }
  return least;
}

struct Pooled {
  Values values;
  std::vector<Values> draws;
  double noise = 0;
  bool changed = false;
};

Pooled pooled(const Family& family, const Values& values, std::optional<double> noise, int draws,
              std::mt19937_64& engine) {
  const bool known = noise.has_value();
  const double bound = known ? *noise : bound_on_noise(family, values);
  const double least = known ? kLeastNoise : least_estimated_noise(family);
  if (smallest_stddev(variances(family, bound)) < least) return {values, {}, bound, false};
  double center = 0, count = 0;
  for (const auto& of_member : values) {
    for (const double value : of_member) center += value, ++count;
  }
  center /= count;
  std::optional<CurveFamily> best;
  Pooled result{values, {}, bound, true};
  for (const double share : kShares) {
    if (share < 1 && known) break;
    CurveFamily tried = fitted(family, values, center, variances(family, share * bound));
    if (best && tried.log_likelihood() <= best->log_likelihood()) continue;
    best.emplace(std::move(tried));
    result.noise = share * bound;
  }
  if (smallest_stddev(variances(family, result.noise)) < least) return {values, {}, result.noise, false};
  const auto at_its_clocks = [&](std::size_t member, const Vector& on_grid) {
    std::vector<double> its;
    for (const model::Measurement& m : family.members[member]->measurements) {
      its.push_back(on_grid[std::ranges::find(family.grid, m.clock) - family.grid.begin()] + center);
    }
    return its;
  };
  for (std::size_t m = 0; m < values.size(); ++m) {
    result.values[m] = at_its_clocks(m, best->posterior(static_cast<int>(m)).mean);
  }
  if (draws == 0) return result;
  for (const auto& draw : best->draws(draws / 2, engine)) {
    Values drawn = result.values, mirrored = result.values;
    for (std::size_t m = 0; m < values.size(); ++m) {
      const std::vector<double> one = at_its_clocks(m, draw[m]);
      for (std::size_t i = 0; i < one.size(); ++i) {
        const double off = kUnknownRoughness * (one[i] - result.values[m][i]);
        drawn[m][i] += off;
        mirrored[m][i] -= off;
      }
    }
    result.draws.push_back(std::move(drawn));
    result.draws.push_back(std::move(mirrored));
  }
  return result;
}

/// Logarithm of the ratio of measured to estimated energies at the family's highest clock, summed over its members.
double lacks_at_highest(const Family& family, const Values& log_times, const Values& measured_powers,
                        const Values& log_powers) {
  double measured_j = 0, pooled_j = 0;
  for (std::size_t m = 0; m < log_times.size(); ++m) {
    if (family.members[m]->measurements.front().clock != family.grid.front()) continue;
    measured_j += std::exp(measured_powers[m].front() + log_times[m].front());
    pooled_j += std::exp(log_powers[m].front() + log_times[m].front());
  }
  return std::log(measured_j / pooled_j);
}

}  // namespace

PooledProfile pool(const model::Profile& profile, std::optional<double> noise, int draws) {
  std::mt19937_64 engine(kSeed);
  PooledProfile result{profile, 0, 0, false, {}};
  std::vector<model::Profile> drawn(static_cast<std::size_t>(draws), profile);
  const std::vector<Family> families = families_of(result.profile);
  std::vector<std::vector<Family>> of_draws;
  for (model::Profile& draw : drawn) of_draws.push_back(families_of(draw));
  for (std::size_t f = 0; f < families.size(); ++f) {
    const Family& family = families[f];
    Values times, powers;
    for (const model::ProfileEntry* entry : family.members) {
      std::vector<double>&of_time = times.emplace_back(), &of_power = powers.emplace_back();
      for (const model::Measurement& m : entry->measurements) {
        of_time.push_back(std::log(m.time.value()));
        of_power.push_back(std::log(m.energy.value()) - of_time.back());
      }
    }
    const Pooled time = pooled(family, times, noise ? noise : noise_of_repeats(family, true), draws, engine);
    for (std::size_t m = 0; m < times.size(); ++m) {
      for (std::size_t i = 0; i < times[m].size(); ++i) powers[m][i] += times[m][i] - time.values[m][i];
    }
    const Pooled power = pooled(family, powers, noise ? noise : noise_of_repeats(family, false), draws, engine);
    result.time_noise = std::max(result.time_noise, time.noise);
    result.power_noise = std::max(result.power_noise, power.noise);
    result.changed = result.changed || time.changed || power.changed;
    if (!time.changed && !power.changed) continue;
    // `powers` are measured energies over pooled times.
    const double lacks = lacks_at_highest(family, time.values, powers, power.values);
    const auto set = [&](const Family& to, const Values& log_times, const Values& log_powers) {
      for (std::size_t m = 0; m < to.members.size(); ++m) {
        for (std::size_t i = 0; i < log_times[m].size(); ++i) {
          model::Measurement& measurement = to.members[m]->measurements[i];
          const double more = measurement.clock == to.grid.front() ? lacks : 0;
          measurement.time = Seconds(std::exp(log_times[m][i]));
          measurement.energy = Joules(std::exp(log_powers[m][i] + log_times[m][i] + more));
        }
      }
    };
    set(family, time.values, power.values);
    for (std::size_t d = 0; d < drawn.size(); ++d) {
      set(of_draws[d][f], time.changed ? time.draws[d] : time.values, power.changed ? power.draws[d] : power.values);
    }
  }
  if (result.changed) result.draws = std::move(drawn);
  return result;
}

}  // namespace perseus::profiling
