// Latency histogram in shared memory: p50 and p99 without storing samples or allocating.
//
// Problem: the helper measures, the training process reads.
// Input:   nanoseconds.
// Output:  quantiles, accurate to 6 % (eight buckets an octave; the result is the middle of the bucket).
// Errors:  none; negative counts as 0, more than five hours as five hours.
// Cost:    an addition; a quantile reads 344 counters.
// Threads: one writer, any readers.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>

namespace perseus::clock_control {

class LatencyHistogram {
 public:
  void record(std::int64_t ns) {
    std::atomic<std::uint32_t>& counter = counters_[bucket_of(ns)];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  [[nodiscard]] std::int64_t count() const {
    std::int64_t sum = 0;
    for (const auto& counter : counters_) sum += counter.load(std::memory_order_relaxed);
    return sum;
  }

  /// The smallest value that at least a share `q` of all values does not exceed, in s; 0 if there are no values.
  [[nodiscard]] double quantile_s(double q) const {
    const auto wanted = static_cast<std::int64_t>(std::ceil(q * static_cast<double>(count())));
    std::int64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += counters_[i].load(std::memory_order_relaxed);
      if (seen > 0 && seen >= wanted) return 0.5e-9 * static_cast<double>(lower_edge(i) + lower_edge(i + 1) - 1);
    }
    return 0;
  }

 private:
  static constexpr std::size_t kBuckets = 344;  // up to 2^44 ns

  static std::size_t bucket_of(std::int64_t ns) {
    if (ns < 8) return ns < 0 ? 0 : static_cast<std::size_t>(ns);
    const auto value = static_cast<std::uint64_t>(ns);
    const int octave = static_cast<int>(std::bit_width(value)) - 1;
    const std::size_t bucket = (octave - 2) * 8 + ((value >> (octave - 3)) & 7);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }

  static std::int64_t lower_edge(std::size_t bucket) {
    if (bucket < 8) return static_cast<std::int64_t>(bucket);
    return static_cast<std::int64_t>(8 + bucket % 8) << (bucket / 8 - 1);
  }

  std::array<std::atomic<std::uint32_t>, kBuckets> counters_{};
};

}  // namespace perseus::clock_control
