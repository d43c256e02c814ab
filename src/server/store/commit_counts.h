// Statistics of a store's commits since it was opened: number, duration, failures.
//
// Input:   each commit's time, and whether it failed.
// Output:  a histogram of the successful commits, for metrics.
// Errors:  none.
// Cost:    some comparisons.
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace perseus::store {

struct CommitCounts {
  static constexpr std::array<double, 9> kUpTo_s{0.0005, 0.002, 0.005, 0.02, 0.1, 0.5, 2, 10, 60};
  /// Commits that took at most kUpTo_s[i] and more than the previous bound; the last entry: longer.
  std::array<std::int64_t, kUpTo_s.size() + 1> took{};
  double seconds = 0;  ///< total of the successful commits
  std::int64_t failed = 0;

  void succeeded_in(double took_s) {
    ++took[static_cast<std::size_t>(std::ranges::lower_bound(kUpTo_s, took_s) - kUpTo_s.begin())];
    seconds += took_s;
  }
};

}  // namespace perseus::store
