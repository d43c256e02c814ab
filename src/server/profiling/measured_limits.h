// Limits of what one rank can have measured: the same for reports of iterations and for profiling windows.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "base/units.h"

namespace perseus::profiling {

/// A scheduler may suspend a job for days within an iteration.
inline constexpr Seconds kLongestIteration(30 * 86'400.0);

/// One GPU can have drawn that energy in that time: it is a positive number, and no power that no GPU draws. One absurd
/// energy would spoil a job's sum, or its profile, for good.
bool is_plausible(Joules energy, Seconds time);
/// "more than 0, at most 15000 J (10 kW)"
std::string allowed_energy(Seconds time);

}  // namespace perseus::profiling
