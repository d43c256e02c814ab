// How long a paced rank pauses after a step of evaluation.
//
// Problem: evaluation has no period: its steps have any size. A pause in proportion to each step's time keeps a share
//          of the time for computing, but ranks that began apart wait for each other within their steps: the first one
//          would pause longer by more than it began earlier, and they would drift apart.
// Method:  the shortest of the last kSteps steps counts: the last rank to begin a step waits for no other one, so the
//          shortest steps of all ranks are alike, and ranks come together.
// Input:   how long each step computed; the share of the time that may be computed.
// Output:  the pause; none after the first step, which may have waited for others.
// Errors:  none.
// Cost:    O(kSteps).
// Threads: one.
// Source:  docs/decisions/0061-evaluation-is-paced-by-its-share.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace perseus::client {

class EvaluationPace {
 public:
  static constexpr std::size_t kSteps = 8;

  /// `share`: above 0.
  [[nodiscard]] std::uint64_t pause_ns(std::uint64_t computed_ns, double share) {
    last_[steps_++ % kSteps] = computed_ns;
    if (steps_ == 1 || share >= 1) return 0;
    const auto known = std::min(steps_, kSteps);
    const std::uint64_t shortest = *std::min_element(last_.begin(), last_.begin() + static_cast<std::ptrdiff_t>(known));
    constexpr double longest_ns = 1e18;  // that an integer takes; the caller pauses less
    return static_cast<std::uint64_t>(std::min(static_cast<double>(shortest) * (1 / share - 1), longest_ns));
  }

 private:
  std::array<std::uint64_t, kSteps> last_{};
  std::size_t steps_ = 0;
};

}  // namespace perseus::client
