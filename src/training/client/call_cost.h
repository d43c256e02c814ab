// Cost of a call of the hot path where it runs: times one call in 64 and reports the median of the last 32 of these.
//
// Problem: measure the client's own overhead without adding to it.
// Output:  ns, without the cost of the two clock readings.
// Cost:    the caller's counter, in a cache line that the caller reads anyway; every 64th call two more clock
//          readings.
// Threads: one measures, any reads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>

namespace perseus::client {

inline std::uint64_t host_now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

inline double host_now_s() noexcept { return 1e-9 * static_cast<double>(host_now_ns()); }

class CallCost {
 public:
  [[nodiscard]] static bool due(std::uint32_t& calls) { return (++calls & 63U) == 0; }
  void took(std::uint64_t ns) {
    costs_[next_++ % costs_.size()].store(static_cast<std::uint32_t>(std::min<std::uint64_t>(ns, UINT32_MAX)),
                                          std::memory_order_relaxed);
  }
  /// 0: not known yet.
  [[nodiscard]] double median_ns() const {
    std::array<std::uint32_t, 32> known{};
    std::size_t count = 0;
    for (const auto& cost : costs_) {
      const std::uint32_t ns = cost.load(std::memory_order_relaxed);
      if (ns != 0) known[count++] = ns;
    }
    if (count == 0) return 0;
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::nth_element(known.begin(), middle, known.begin() + static_cast<std::ptrdiff_t>(count));
    return std::max(0.0, *middle - reading_ns());
  }

 private:
  static double reading_ns() {
    std::uint64_t least = UINT64_MAX;
    for (int i = 0; i < 16; ++i) {
      const std::uint64_t from = host_now_ns();
      least = std::min(least, host_now_ns() - from);
    }
    return static_cast<double>(least);
  }
  std::size_t next_ = 0;
  std::array<std::atomic<std::uint32_t>, 32> costs_{};
};

}  // namespace perseus::client
