// Reads the values of one result of a rank: checks its shape, and leaves out what cannot be true by itself.
//
// Input:   a result and its window.
// Output:  the logarithms of plausible values; what is known of each iteration; the values left out, with reasons:
//          those that are not positive numbers, energies that is_plausible() excludes, iterations that the device
//          reports as throttled, iterations whose computations take longer than the iteration, or more energy.
// Errors:  check_shape() names what is wrong with the result as a whole; read_values() needs a result that it accepts.
// Cost:    linear in the values.
// Threads: pure functions.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "server/profiling/layout.h"
#include "server/profiling/online_profiler.h"

namespace perseus::profiling {

/// Logarithms of one computation's time and energy; the energy is NaN where it was not measured.
struct SampledValue {
  int type, clock, iteration, occurrence;
  std::string_view instruction;
  double time, energy;
  bool kept = true;
};

struct ReadIteration {
  bool usable = false;
  bool broken_down = true;  ///< every computation with a clock has an energy
  bool complete = true;     ///< every computation's time is known
  double computing_s = 0, computing_j = 0;
  double energy_j = std::numeric_limits<double>::quiet_NaN();  ///< NaN: not known
};

struct ReadValues {
  std::vector<SampledValue> values;
  std::vector<ReadIteration> iterations;
  std::vector<Rejection> rejections;
};

Status check_shape(const Layout& layout, const RankResult& result);
/// `use_throttled`: throttled iterations count too.
ReadValues read_values(const Layout& layout, const RankResult& result, const ProfilingWindow& window,
                       bool use_throttled);
/// "rank 0, window 3, iteration 1"
std::string where(const RankResult& result, int iteration);

/// A scheduler may suspend a job for days within an iteration.
inline constexpr Seconds kLongestIteration(30 * 86'400.0);

/// One GPU can have drawn that energy in that time: it is a positive number, and no power that no GPU draws. One absurd
/// energy would spoil a job's sum, or its profile, for good.
bool is_plausible(Joules energy, Seconds time);
/// "more than 0, at most 15000 J (10 kW)"
std::string allowed_energy(Seconds time);

}  // namespace perseus::profiling
