// Log of the clocks that the helper set on the device; the training process finds in it at which clock a computation
// ran.
//
// Output:  records in order; a reader that is more than kCapacity behind loses the oldest and gets their number.
// Cost:    four stores per device call; 16 bytes per record.
// Threads: one writer, one reader, in any two processes. Lock-free atomics only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace perseus::clock_control {

struct AppliedClock {
  std::int64_t call_ns = 0;    ///< CLOCK_MONOTONIC when the device call began
  int clock_mhz = 0;           ///< 0: the clock went back to the driver
  std::uint32_t position = 0;  ///< that the device had to reach first
  bool at_device_time = false;
  bool limited = false;  ///< lower than requested, by a power budget
};

class AppliedClocks {
 public:
  static constexpr std::uint64_t kCapacity = 2048;

  void write(const AppliedClock& applied) noexcept {
    const std::uint64_t count = count_.load(std::memory_order_relaxed);
    Slot& slot = slots_[count % kCapacity];
    slot.call_ns.store(applied.call_ns, std::memory_order_relaxed);
    slot.word.store((std::uint64_t{applied.position} << 32) |
                        (std::uint64_t{static_cast<std::uint16_t>(applied.clock_mhz)} << 16) |
                        (applied.at_device_time ? kAtDeviceTime : 0) | (applied.limited ? kLimited : 0),
                    std::memory_order_relaxed);
    count_.store(count + 1, std::memory_order_release);
  }

  /// Calls `use` for every record since `read`, and advances `read`. Returns the number of lost records.
  template <class Use>
  std::uint64_t read_from(std::uint64_t& read, Use&& use) const {
    const std::uint64_t count = count_.load(std::memory_order_acquire);
    std::uint64_t lost = 0;
    // Half of it, since the writer may be overwriting the oldest ones.
    if (count - read > kCapacity / 2) {
      lost = count - read - kCapacity / 2;
      read += lost;
    }
    for (; read != count; ++read) {
      const Slot& slot = slots_[read % kCapacity];
      const std::uint64_t word = slot.word.load(std::memory_order_relaxed);
      use(AppliedClock{slot.call_ns.load(std::memory_order_relaxed), static_cast<int>((word >> 16) & 0xffff),
                       static_cast<std::uint32_t>(word >> 32), (word & kAtDeviceTime) != 0, (word & kLimited) != 0});
    }
    return lost;
  }

 private:
  static constexpr std::uint64_t kAtDeviceTime = 1, kLimited = 2;
  struct Slot {
    std::atomic<std::int64_t> call_ns{0};
    std::atomic<std::uint64_t> word{0};
  };
  std::atomic<std::uint64_t> count_{0};
  std::array<Slot, kCapacity> slots_{};
};

}  // namespace perseus::clock_control
