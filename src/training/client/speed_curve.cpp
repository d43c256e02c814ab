#include "training/client/speed_curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace perseus::client {
namespace {

constexpr double kExponent = 0.75, kExponentStddev = 0.25;          ///< exponent a in time ~ clock^-a
constexpr double kBetweenStddev = 0.01;                             ///< of a time interpolated between two neighbors
constexpr double kLeastStddev = 0.003;                              ///< between runs of the same work
constexpr double kMostWeight = 20 / (kLeastStddev * kLeastStddev);  ///< limit, so that the curve follows a device
                                                                    ///< that changes

double power_law(int from_mhz, int to_mhz) { return std::pow(static_cast<double>(from_mhz) / to_mhz, kExponent); }
double distance(int from_mhz, int to_mhz) { return std::abs(std::log(static_cast<double>(from_mhz) / to_mhz)); }

}  // namespace

TimeEstimate SpeedCurve::at(int clock_mhz) const {
  if (known_.empty()) return {};
  const auto above = known_.lower_bound(clock_mhz);
  const auto of = [](const Known& known) {
    return TimeEstimate{known.time_s, known.time_s * std::max(kLeastStddev, 1 / std::sqrt(known.weight))};
  };
  if (above != known_.end() && above->first == clock_mhz) return of(above->second);
  if (above == known_.end() || above == known_.begin()) {
    const auto& [nearest, known] = above == known_.end() ? *std::prev(above) : *above;
    const double time = known.time_s * power_law(nearest, clock_mhz);
    return {time, time * (kLeastStddev + kExponentStddev * distance(nearest, clock_mhz))};
  }
  const auto below = std::prev(above);
  const double share = distance(below->first, clock_mhz) / distance(below->first, above->first);
  const double time = std::pow(below->second.time_s, 1 - share) * std::pow(above->second.time_s, share);
  return {time, time * kBetweenStddev};
}

TimeEstimate SpeedCurve::alone(std::span<const ClockedTime> run, int clock_mhz, double moments_stddev_s) const {
  double here_s = 0;     // at that clock
  double done = 0;       // share of the work done at other clocks
  double doubt = 0;      // ... its standard deviation
  double elsewhere = 0;  // the same by the power law alone, in seconds at that clock
  double elsewhere_stddev = 0;
  double slope = 0;  // relative speed of the others
  for (const ClockedTime& piece : run) {
    if (piece.clock_mhz == clock_mhz) {
      here_s += piece.seconds;
      continue;
    }
    const TimeEstimate there = at(piece.clock_mhz);
    if (there.time_s > 0) {
      done += piece.seconds / there.time_s;
      doubt += piece.seconds / there.time_s * there.stddev_s / there.time_s;
    }
    const double seconds = piece.seconds * power_law(piece.clock_mhz, clock_mhz);
    elsewhere += seconds;
    elsewhere_stddev += seconds * kExponentStddev * distance(piece.clock_mhz, clock_mhz);
    slope = std::max(slope, std::abs(1 - power_law(piece.clock_mhz, clock_mhz)));
  }
  const double moments = slope * moments_stddev_s;
  if (known_.empty() || done <= 0 || done >= 0.9 || here_s <= 0) {
    return {here_s + elsewhere, std::hypot(elsewhere_stddev, moments)};
  }
  const double time = here_s / (1 - done);
  return {time, std::hypot(time * doubt / (1 - done), moments)};
}

void SpeedCurve::learn(int clock_mhz, const TimeEstimate& time) {
  if (!(time.time_s > 0)) return;
  const double relative = std::max(time.stddev_s / time.time_s, kLeastStddev);
  const double weight = 1 / (relative * relative);
  Known& known = known_[clock_mhz];
  known.time_s = (known.weight * known.time_s + weight * time.time_s) / (known.weight + weight);
  known.weight = std::min(known.weight + weight, kMostWeight);
}

}  // namespace perseus::client
