// The published order of profiling: one uniform clock after another, from the highest down.
//
// Problem: choose the clock of each type in the next window, and decide when a type is done. Two warm-up windows at
//          the highest clock come first. A type is done once its energy keeps rising (each of its last
//          kPlainRisingClocks measured clocks needs more energy than its best clock), or when it has no lower clock
//          left. It then stays at its best clock until the others are done.
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

inline constexpr int kPlainWarmUpWindows = 2;

/// A type is done once this many of its lowest measured clocks need more energy than the least.
inline constexpr int kPlainRisingClocks = 5;

std::optional<std::vector<int>> plain_clocks(const Layout& layout, const Samples& samples);

}  // namespace perseus::profiling
