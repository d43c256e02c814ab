#include "server/profiling/pooled_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "base/median.h"
#include "planning/planner/choices.h"
#include "server/profiling/curve_family.h"

namespace perseus::profiling {
namespace {

constexpr std::size_t kFewestClocks = 3;
// To estimate noise from one sample a clock:
constexpr std::size_t kHighestOrder = 5;  // of polynomials; as many neighbors
constexpr std::size_t kFewestRests = 8;
constexpr double kMostEqual = 0.05;                      // share of neighboring clocks
constexpr double kCoarsestUnit = 1, kFinestUnit = 1e-7;  // s or J, of rounded values
constexpr double kExplained = 3;                         // times the rounding: what looks like noise is none
constexpr double kSurely = 0.6;  // of the least noise that counts: the least of several estimates is an underestimate
constexpr std::uint64_t kSeed = 14;
/// Candidates, as shares of the bound on the noise.
constexpr double kShares[] = {1, 0.5, 0.25, 0.125};

/// Scale of the draws' distance from the mean relative to the posterior, which takes the fitted roughness as known.
/// With 1, too few of the real times lie within two standard deviations (docs/measurements/noise.md).
constexpr double kUnknownRoughness = 1.5;

/// Times that the measurements' noise is drawn anew, to see by how much choosing clocks errs.
constexpr int kNoiseDraws = 32;

/// The entries of one instruction, whose curves resemble each other.
struct Family {
  std::vector<model::ProfileEntry*> members;
  std::vector<Megahertz> grid;                    ///< all their clocks, highest first
  std::vector<std::vector<Eigen::Index>> places;  ///< on the grid, of each member's clocks
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
    for (const model::ProfileEntry* entry : family.members) {
      std::vector<Eigen::Index>& places = family.places.emplace_back();
      for (const model::Measurement& m : entry->measurements) {
        places.push_back(std::ranges::find(family.grid, m.clock) - family.grid.begin());
      }
    }
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

/// Distance of a value from the polynomial through `order` neighbors, over the standard deviation that this distance
/// has where all values have one of 1.
double rest(const std::vector<model::Measurement>& measured, const std::vector<double>& values, std::size_t first,
            std::size_t order) {
  const auto at = [&](std::size_t j) { return log_clock(measured[first + j].clock, measured.front().clock); };
  const std::size_t middle = order / 2;
  double rest = values[first + middle], squares = 1;
  for (std::size_t j = 0; j <= order; ++j) {
    if (j == middle) continue;
    double weight = 1;
    for (std::size_t k = 0; k <= order; ++k) {
      if (k != j && k != middle) weight *= (at(middle) - at(k)) / (at(j) - at(k));
    }
    rest -= weight * values[first + j];
    squares += weight * weight;
  }
  return rest / std::sqrt(squares);
}

/// Whether equal values stand side by side too often to be noise: rounded, or a limit of the GPU.
bool has_equal_neighbors(const Values& values) {
  int equal = 0, pairs = 0;
  for (const std::vector<double>& of_member : values) {
    for (std::size_t i = 1; i < of_member.size(); ++i, ++pairs) equal += of_member[i] == of_member[i - 1] ? 1 : 0;
  }
  return equal > kMostEqual * pairs;
}

/// Standard deviation of rounding where all values of an entry are multiples of a power of ten, relative; the largest
/// of all entries.
double rounding(const Family& family, bool of_time) {
  const auto relative = [&](const std::vector<model::Measurement>& measured) {
    const auto value = [&](const model::Measurement& m) { return of_time ? m.time.value() : m.energy.value(); };
    for (double unit = kCoarsestUnit; unit > kFinestUnit; unit /= 10) {
      const auto is_multiple = [&](const model::Measurement& m) {
        const double count = value(m) / unit;
        return std::abs(count - std::round(count)) < 1e-6 * std::max(1.0, count);
      };
      if (std::ranges::all_of(measured, is_multiple)) return unit / std::sqrt(12) / value(measured.front());
    }
    return 0.0;
  };
  double most = 0;
  for (const model::ProfileEntry* entry : family.members) most = std::max(most, relative(entry->measurements));
  return most;
}

struct NoiseBounds {
  double of_lines = 0;  ///< what is left after a line through two neighbors
  double least = 0;     ///< of several orders of polynomials, and of what members do not share: 0 in exact profiles
};

/// Bounds on the noise of a mean from above: what is left of each value after a polynomial through its neighbors.
/// Curvature and steps count as noise in some, noise in all.
NoiseBounds bounds_on_noise(const Family& family, const Values& values) {
  if (has_equal_neighbors(values)) return {};
  NoiseBounds bounds{0, INFINITY};
  for (std::size_t order = 2; order <= kHighestOrder; ++order) {
    std::vector<double> off, not_shared;
    std::map<std::vector<Megahertz>, std::vector<double>> rests;  // by clocks
    for (std::size_t m = 0; m < family.members.size(); ++m) {
      const std::vector<model::Measurement>& measured = family.members[m]->measurements;
      for (std::size_t first = 0; first + order < measured.size(); ++first) {
        std::vector<Megahertz> clocks;
        for (std::size_t j = 0; j <= order; ++j) clocks.push_back(measured[first + j].clock);
        const double of_value = rest(measured, values[m], first, order);
        off.push_back(std::abs(of_value));
        rests[clocks].push_back(of_value);
      }
    }
    if (off.size() < kFewestRests) break;
    const double of_order = stddev_of(std::move(off));
    if (order == 2) bounds.of_lines = of_order;
    bounds.least = std::min(bounds.least, of_order);
    for (const auto& [clocks, of_members] : rests) {
      const auto count = static_cast<double>(of_members.size());
      if (count < 2) continue;
      const double shared = median(of_members);
      for (const double one : of_members) not_shared.push_back(std::abs(one - shared) / std::sqrt(1 - 1 / count));
    }
    if (not_shared.size() >= kFewestRests) bounds.least = std::min(bounds.least, stddev_of(std::move(not_shared)));
  }
  return bounds;
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
    Observations observed{
        Matrix::Zero(static_cast<int>(values[m].size()), static_cast<int>(positions.size())), {}, variance[m]};
    for (std::size_t i = 0; i < values[m].size(); ++i) {
      observed.design(static_cast<int>(i), family.places[m][i]) = 1;
      observed.value.push_back(values[m][i] - center);
    }
    members.push_back(std::move(observed));
  }
  return {std::move(positions), std::move(members), RareSteps::none};
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
  std::optional<CurveFamily> fit = {};  ///< where changed
};

Pooled pooled(const Family& family, const Values& values, std::optional<double> noise, double rounding, int draws,
              std::mt19937_64& engine) {
  const bool known = noise.has_value();
  const NoiseBounds bounds = known ? NoiseBounds{*noise, *noise} : bounds_on_noise(family, values);
  const double bound = bounds.of_lines, least = known ? kLeastNoise : least_estimated_noise(family);
  const double surely = known ? least : kSurely * least;
  if (!known && bound < kExplained * rounding) return {values, {}, 0, false};
  if (smallest_stddev(variances(family, bound)) < least || smallest_stddev(variances(family, bounds.least)) < surely) {
    return {values, {}, std::min(bound, bounds.least), false};
  }
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
    for (const Eigen::Index place : family.places[member]) its.push_back(on_grid[place] + center);
    return its;
  };
  for (std::size_t m = 0; m < values.size(); ++m) {
    result.values[m] = at_its_clocks(m, best->posterior(static_cast<int>(m)).mean);
  }
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
  result.fit = std::move(best);
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

/// What noise, drawn anew, would change in pooled values: [member], a row per clock, a column per drawing.
std::vector<Matrix> errors(const Family& family, const Pooled& pooled, const std::vector<Matrix>& time_errors,
                           std::mt19937_64& engine) {
  const Values variance = variances(family, pooled.noise);
  std::vector<Matrix> changes;
  for (std::size_t m = 0; m < variance.size(); ++m) {
    Matrix& of_member = changes.emplace_back(static_cast<Eigen::Index>(variance[m].size()), kNoiseDraws);
    for (Eigen::Index d = 0; d < kNoiseDraws; ++d) {
      for (Eigen::Index i = 0; i < of_member.rows(); ++i) {
        of_member(i, d) = pooled.changed ? std::sqrt(variance[m][i]) * standard_normal(engine) : 0;
      }
    }
    if (!time_errors.empty()) of_member -= time_errors[m];  // powers are energies over pooled times
  }
  if (!pooled.fit) return changes;
  std::vector<Matrix> on_grid = pooled.fit->responses(changes);
  for (std::size_t m = 0; m < changes.size(); ++m) changes[m] = on_grid[m](family.places[m], Eigen::all);
  return changes;
}

/// Per vertex of the hull from the slowest: the price of time up to which it is the best of all clocks.
std::vector<double> highest_prices(const planner::ChoiceSet& choices) {
  std::vector<double> prices;
  for (std::size_t k = 1; k < choices.hull.size(); ++k) {
    const planner::Choice &slow = choices.pareto[choices.hull[k - 1]], &fast = choices.pareto[choices.hull[k]];
    prices.push_back((fast.effective_energy - slow.effective_energy) / (slow.time - fast.time) / Watts(1));
  }
  return prices;
}

/// By how much a chosen clock's energy exceeds its pooled one, in logarithms, because noise made it look best: the mean
/// over drawings of noise and the prices of time at which some clock is best, if the pooled values were the true ones.
double optimism(const Family& family, const Values& log_times, const Values& log_powers,
                const std::vector<Matrix>& time_errors, const std::vector<Matrix>& power_errors) {
  double sum = 0, count = 0;
  for (std::size_t m = 0; m < log_times.size(); ++m) {
    std::vector<model::Measurement> pooled = family.members[m]->measurements;
    for (std::size_t i = 0; i < pooled.size(); ++i) {
      pooled[i].time = Seconds(std::exp(log_times[m][i]));
      pooled[i].energy = pooled[i].time * Watts(std::exp(log_powers[m][i]));
    }
    std::vector<double> prices = highest_prices(planner::make_choices(pooled, Watts(0)));
    for (std::size_t k = prices.size(); k-- > 0;) prices[k] = (prices[k] + (k > 0 ? prices[k - 1] : 0)) / 2;
    std::vector<model::Measurement> drawn = pooled;
    for (Eigen::Index d = 0; d < kNoiseDraws; ++d) {
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        const double time_error = time_errors[m](static_cast<Eigen::Index>(i), d);
        drawn[i].time = pooled[i].time * std::exp(time_error);
        drawn[i].energy = pooled[i].energy * std::exp(time_error + power_errors[m](static_cast<Eigen::Index>(i), d));
      }
      const planner::ChoiceSet choices = planner::make_choices(drawn, Watts(0));
      const std::vector<double> until = highest_prices(choices);
      std::size_t vertex = 0;
      for (const double price : prices) {
        while (vertex < until.size() && until[vertex] <= price) ++vertex;
        const std::size_t best = choices.pareto[choices.hull[vertex]].option;
        if (drawn[best].clock != family.grid.front()) sum += std::log(pooled[best].energy / drawn[best].energy);
        count += 1;
      }
    }
  }
  return count > 0 ? std::max(0.0, sum / count) : 0;
}

}  // namespace

PooledProfile pool(const model::Profile& profile, std::optional<double> noise, int draws) {
  std::mt19937_64 engine(kSeed), noise_engine(kSeed);
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
    const Pooled time =
        pooled(family, times, noise ? noise : noise_of_repeats(family, true), rounding(family, true), draws, engine);
    for (std::size_t m = 0; m < times.size(); ++m) {
      for (std::size_t i = 0; i < times[m].size(); ++i) powers[m][i] += times[m][i] - time.values[m][i];
    }
    const Pooled power = pooled(family, powers, noise ? noise : noise_of_repeats(family, false),
                                std::hypot(rounding(family, true), rounding(family, false)), draws, engine);
    result.time_noise = std::max(result.time_noise, time.noise);
    result.power_noise = std::max(result.power_noise, power.noise);
    result.changed = result.changed || time.changed || power.changed;
    if (!time.changed && !power.changed) continue;
    // `powers` are measured energies over pooled times, so those times are in all energies, a draw's too.
    const double lacks = lacks_at_highest(family, time.values, powers, power.values);
    const std::vector<Matrix> time_errors = errors(family, time, {}, noise_engine);
    const double chosen =
        optimism(family, time.values, power.values, time_errors, errors(family, power, time_errors, noise_engine));
    const auto set = [&](const Family& to, const Values& log_times, const Values& log_powers) {
      for (std::size_t m = 0; m < to.members.size(); ++m) {
        for (std::size_t i = 0; i < log_times[m].size(); ++i) {
          model::Measurement& measurement = to.members[m]->measurements[i];
          const double more = measurement.clock == to.grid.front() ? lacks : chosen;
          measurement.time = Seconds(std::exp(log_times[m][i]));
          measurement.energy = Joules(std::exp(log_powers[m][i] + time.values[m][i] + more));
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
