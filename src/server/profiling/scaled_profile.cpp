#include "server/profiling/scaled_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace perseus::profiling {
namespace {

constexpr double kDeviates = 0.01, kStandardErrors = 4;
constexpr double kTimesApart = 0.02, kPowersApart = 0.05;  ///< of one clock from all
constexpr double kLeastStddev = 0.002;                     ///< of a clock: real curves have steps

/// The logarithm of now / before, at one clock.
struct Ratio {
  double value, stddev;
};

/// The factor that all clocks share; nothing: they do not. 1 if it is not significant.
std::optional<double> common_factor(const std::vector<Ratio>& ratios, double apart) {
  double sum = 0, weights = 0;
  for (const Ratio& ratio : ratios) {
    const double weight = 1 / (ratio.stddev * ratio.stddev + kLeastStddev * kLeastStddev);
    sum += weight * ratio.value;
    weights += weight;
  }
  const double mean = sum / weights;
  const auto differs = [&](const Ratio& ratio) {
    return !(std::abs(ratio.value - mean) <= apart + kStandardErrors * ratio.stddev);
  };
  if (std::ranges::any_of(ratios, differs)) return std::nullopt;
  const bool significant = std::abs(mean) > std::max(kDeviates, kStandardErrors / std::sqrt(weights));
  return significant ? std::exp(mean) : 1;
}

double log_ratio(double now, double before) { return std::log(now / before); }

}  // namespace

std::optional<ScaledProfile> scaled_profile(model::Profile before, const ProfileEstimate& now) {
  const model::Profile& measured = now.profile;
  if (before.accelerators != measured.accelerators || before.entries.size() != measured.entries.size()) return {};
  std::size_t deviating = 0;
  double most = 1;
  std::string which;
  for (std::size_t e = 0; e < measured.entries.size(); ++e) {
    const model::ProfileEntry& entry = measured.entries[e];
    const auto same = std::ranges::find_if(before.entries, [&](const model::ProfileEntry& other) {
      return other.stage == entry.stage && other.instruction == entry.instruction;
    });
    if (same == before.entries.end()) return {};
    std::vector<Ratio> times, powers;
    for (std::size_t c = 0; c < entry.measurements.size(); ++c) {
      const model::Measurement& after = entry.measurements[c];
      const auto earlier = std::ranges::find(same->measurements, after.clock, &model::Measurement::clock);
      if (now.sources[e][c] != ProfileSource::measured || earlier == same->measurements.end()) continue;
      const double time = log_ratio(after.time.value(), earlier->time.value());
      times.push_back({time, after.time_stddev / after.time});
      if (now.energies_by_iteration || !(earlier->energy > Joules(0))) continue;
      powers.push_back({log_ratio(after.energy.value(), earlier->energy.value()) - time,
                        std::hypot(after.energy_stddev / after.energy, after.time_stddev / after.time)});
    }
    if (times.empty()) return {};
    const auto slower = common_factor(times, kTimesApart);
    const auto stronger = powers.empty() ? std::optional(1.0) : common_factor(powers, kPowersApart);
    if (!slower || !stronger) return {};
    if (*slower == 1 && *stronger == 1) continue;
    ++deviating;
    for (model::Measurement& one : same->measurements) {
      one.time = one.time * *slower;
      one.time_stddev = one.time_stddev * *slower;
      one.energy = one.energy * (*slower * *stronger);
      one.energy_stddev = one.energy_stddev * (*slower * *stronger);
    }
    if (!which.empty() && std::abs(std::log(*slower)) <= std::abs(std::log(most))) continue;
    most = *slower;
    which = fmt::format("{} of stage {} takes {:.3g} times as long as before", entry.instruction, entry.stage, most);
  }
  if (deviating == 0) return {};
  return ScaledProfile{std::move(before),
                       fmt::format("{} of {} computations deviate from the profile by a factor each, most of all {}",
                                   deviating, measured.entries.size(), which)};
}

}  // namespace perseus::profiling
