// Limits of a power budget on every clock of one GPU, in the memory that the training process shares with its helper.
//
// The ceiling holds while no plan is valid: from the end of the plan lease on, which the training process extends with
// every answer of the server, and whenever the clock is the driver's choice. The helper enforces it alone, so it also
// holds while the training process hangs or is stopped. The cap is the highest clock from now on, also for changes
// that are queued already, until the training thread has replaced them: lift() with the ticket of that cap; a newer
// cap stays. A fall is a lower ceiling from a time on: then it bounds every clock, and the plan lease does not matter.
//
// Input:   set, extend, cap and fall from one thread; lift from the training thread; times of monotonic_ns().
// Output:  the limits that hold at a time, for the helper.
// Cost:    a few stores; at() a dozen loads.
// Threads: one sets, one lifts, one process reads; lock-free atomics only.
// Source:  docs/decisions/0051-lease-and-ceiling-of-a-budget.md.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.h"

namespace perseus::clock_control {

/// Limits at one time.
struct ClockBounds {
  Megahertz locked;      ///< highest clock that may be locked; 0: any
  Megahertz unlocked;    ///< to be locked in place of the driver's choice; 0: none
  bool expired = false;  ///< the plan lease has ended
  friend bool operator==(const ClockBounds&, const ClockBounds&) = default;
};

/// From that time on, no clock above the ceiling.
struct CeilingFall {
  std::int64_t at_ns = 0;
  Megahertz ceiling;
};

class ClockLimit {
 public:
  static constexpr std::size_t kMostFalls = 8;

  // ---- The training process. If a function returns true, the helper must look at the limits again.
  /// `ceiling` 0: no budget. Falls stay.
  void set(Megahertz ceiling, std::int64_t plan_until_ns) noexcept {
    plan_until_ns_.store(plan_until_ns, std::memory_order_relaxed);
    if (ceiling.value() == 0) cap_.store(cap_.load(std::memory_order_relaxed) & ~kClock, std::memory_order_relaxed);
    ceiling_.store(ceiling.value(), std::memory_order_release);
    changes_.fetch_add(1, std::memory_order_seq_cst);
  }
  bool extend(std::int64_t plan_until_ns) noexcept {
    plan_until_ns_.store(plan_until_ns, std::memory_order_seq_cst);
    // Writes the time, then reads `expired_`; the helper writes `expired_`, then reads the time. So one of them sees
    // the other.
    if (expired_.load(std::memory_order_seq_cst) == 0) return false;
    changes_.fetch_add(1, std::memory_order_seq_cst);
    return true;
  }
  /// Returns the ticket for lift(), never 0.
  std::uint32_t cap(Megahertz clock) noexcept {
    std::uint64_t before = cap_.load(std::memory_order_relaxed), after = 0;
    do {
      std::uint32_t ticket = static_cast<std::uint32_t>(before >> 32) + 1;
      if (ticket == 0) ticket = 1;
      after = (std::uint64_t{ticket} << 32) | static_cast<std::uint32_t>(clock.value());
    } while (!cap_.compare_exchange_weak(before, after, std::memory_order_acq_rel));
    changes_.fetch_add(1, std::memory_order_seq_cst);
    return static_cast<std::uint32_t>(after >> 32);
  }
  bool lift(std::uint32_t ticket) noexcept {
    std::uint64_t before = cap_.load(std::memory_order_relaxed);
    do {
      if (static_cast<std::uint32_t>(before >> 32) != ticket || (before & kClock) == 0) return false;
    } while (!cap_.compare_exchange_weak(before, before & ~kClock, std::memory_order_acq_rel));
    changes_.fetch_add(1, std::memory_order_seq_cst);
    return true;
  }

  /// Replaces all falls; more than kMostFalls: the last of these takes the least ceiling of the rest. Each is written
  /// at once: meanwhile a part of the old ones and a part of the new ones hold.
  void falls(std::span<const CeilingFall> falls) noexcept {
    for (std::size_t k = 0; k < kMostFalls; ++k) {
      std::uint64_t packed = 0;
      if (k < falls.size()) {
        Megahertz ceiling = falls[k].ceiling;
        for (std::size_t rest = k + 1; k + 1 == kMostFalls && rest < falls.size(); ++rest) {
          ceiling = std::min(ceiling, falls[rest].ceiling);
        }
        const std::int64_t at_ms = std::max<std::int64_t>(falls[k].at_ns / kMillisecond_ns, 1);
        packed = (static_cast<std::uint64_t>(at_ms) << kClockBits) | static_cast<std::uint64_t>(ceiling.value());
      }
      falls_[k].store(packed, std::memory_order_relaxed);
    }
    changes_.fetch_add(1, std::memory_order_seq_cst);
  }

  // ---- The helper.
  /// Number of changes so far. Sequentially consistent, see Mailbox::may_rest().
  [[nodiscard]] std::uint32_t changes() const noexcept { return changes_.load(std::memory_order_seq_cst); }
  ClockBounds at(std::int64_t now_ns) noexcept {
    const Megahertz ceiling = this->ceiling();
    if (ceiling.value() == 0) {
      expired_.store(0, std::memory_order_relaxed);
      return {};
    }
    bool expired = now_ns >= plan_until_ns_.load(std::memory_order_relaxed);
    if (expired) {
      expired_.store(1, std::memory_order_seq_cst);
      expired = now_ns >= plan_until_ns_.load(std::memory_order_seq_cst);
    }
    if (!expired) expired_.store(0, std::memory_order_relaxed);
    looked_ns_.store(now_ns, std::memory_order_relaxed);
    const Megahertz cap = capped_at(), fallen = fallen_ceiling(now_ns);
    Megahertz unlocked = cap.value() == 0 ? ceiling : std::min(cap, ceiling);
    if (fallen.value() != 0) unlocked = std::min(unlocked, fallen);
    const Megahertz locked = cap.value() == 0 || (fallen.value() != 0 && fallen < cap) ? fallen : cap;
    return {expired ? unlocked : locked, unlocked, expired};
  }
  /// When at() changes by itself after its last call; 0: never.
  [[nodiscard]] std::int64_t next_ns() const noexcept {
    if (ceiling().value() == 0) return 0;
    const bool runs = expired_.load(std::memory_order_relaxed) == 0;
    std::int64_t next = runs ? plan_until_ns_.load(std::memory_order_relaxed) : 0;
    const std::int64_t looked = looked_ns_.load(std::memory_order_relaxed);
    for (std::size_t k = 0; k < kMostFalls; ++k) {
      const CeilingFall fall = fall_of(k);
      if (fall.at_ns > looked && (next == 0 || fall.at_ns < next)) next = fall.at_ns;
    }
    return next;
  }

  // ---- Any.
  [[nodiscard]] Megahertz ceiling() const noexcept { return Megahertz(ceiling_.load(std::memory_order_acquire)); }
  /// The least of all ceilings, of now and later; 0: no budget. For a clock that nobody can lower at the time of a
  /// fall.
  [[nodiscard]] Megahertz least_ceiling() const noexcept {
    Megahertz least = ceiling();
    for (std::size_t k = 0; k < kMostFalls && least.value() != 0; ++k) {
      if (const CeilingFall fall = fall_of(k); fall.at_ns != 0) least = std::min(least, fall.ceiling);
    }
    return least;
  }
  /// The least ceiling of the falls until then; 0: none.
  [[nodiscard]] Megahertz fallen_ceiling(std::int64_t now_ns) const noexcept {
    Megahertz least;
    for (std::size_t k = 0; k < kMostFalls; ++k) {
      const CeilingFall fall = fall_of(k);
      if (fall.at_ns == 0 || fall.at_ns > now_ns) continue;
      least = least.value() == 0 ? fall.ceiling : std::min(least, fall.ceiling);
    }
    return least;
  }
  /// 0: no cap.
  [[nodiscard]] Megahertz capped_at() const noexcept {
    return Megahertz(static_cast<int>(cap_.load(std::memory_order_acquire) & kClock));
  }

 private:
  static constexpr int kClockBits = 16;
  static constexpr std::uint64_t kClock = (1U << kClockBits) - 1;
  static constexpr std::int64_t kMillisecond_ns = 1'000'000;

  [[nodiscard]] CeilingFall fall_of(std::size_t k) const noexcept {
    const std::uint64_t packed = falls_[k].load(std::memory_order_relaxed);
    return {static_cast<std::int64_t>(packed >> kClockBits) * kMillisecond_ns,
            Megahertz(static_cast<int>(packed & kClock))};
  }

  std::atomic<std::int32_t> ceiling_{0};
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<std::int64_t> plan_until_ns_{0};
  std::atomic<std::uint64_t> cap_{0};                           ///< ticket, clock (0: none)
  std::atomic<std::uint32_t> expired_{0};                       ///< the helper's: it has seen the plan lease end
  std::atomic<std::int64_t> looked_ns_{0};                      ///< the helper's: of its last at()
  std::array<std::atomic<std::uint64_t>, kMostFalls> falls_{};  ///< time (ms), clock; 0: none
};

}  // namespace perseus::clock_control
