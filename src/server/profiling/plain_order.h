// The published order of profiling: one uniform clock after another, from the highest down.
//
// Problem: which clock each type runs at in the next window, and whether it is done. Two windows of warm-up at the
//          highest clock come first. A type is done once its energy keeps rising: so many clocks in a row, the last
//          ones measured, that each need more energy than its best clock, or when it has no lower clock left. A type
//          that is done waits for the others at its best clock.
// Input:   layout, the windows and samples so far.
// Output:  clock index per type, or nothing when all are done.
// Errors:  none.
// Cost:    O(types * clocks).
// Threads: pure.
// Source:  paper section 5 (Profiler), and the published server's two warm-up rounds.
#pragma once

#include <optional>
#include <vector>

#include "server/profiling/layout.h"
#include "server/profiling/samples.h"

namespace perseus::profiling {

inline constexpr int plain_warm_up_windows = 2;

/// Done once the energy at so many of the lowest clocks measured is above the least.
inline constexpr int plain_rising_clocks = 5;

std::optional<std::vector<int>> plain_clocks(const Layout& layout, const Samples& samples);

}  // namespace perseus::profiling
