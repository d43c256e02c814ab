// What the training process and its helper share: one page-sized record in shared memory.
//
// Problem: tell the helper the newest clock without waiting, without a queue (a clock asked for long ago must never be
// set late), and hear what came of it. Input: a request is one 64-bit word: the clock, and when it was asked for, which
// also makes it unique: the newest word is the mailbox's content. With it goes which request of its training step it
// is, so that the helper can expect the next. Output: what was applied, and latencies.
// Errors: none here; the text of a failure is written once and then announced. Cost: post() two atomic stores and
// reading a clock, and one write to an eventfd if the helper sleeps. Threads: one posts, one applies (in any two
// processes), any read. Everything is a lock-free atomic or written before one that announces it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"
#include "clock_control/latency_histogram.h"

namespace perseus {

std::int64_t monotonic_ns() noexcept;  ///< CLOCK_MONOTONIC, the same in all processes of a machine

/// A clock and when it was asked for. Times are kept in 48 bits, which suffices for what is younger than three days.
class ClockRequest {
 public:
  constexpr ClockRequest() = default;
  constexpr explicit ClockRequest(std::uint64_t word) : word_(word) {}
  constexpr ClockRequest(int mhz, std::int64_t at_ns)
      : word_((static_cast<std::uint64_t>(at_ns) << 16) | static_cast<std::uint16_t>(mhz)) {}
  [[nodiscard]] constexpr Megahertz clock() const { return Megahertz(static_cast<int>(word_ & 0xffff)); }
  [[nodiscard]] constexpr std::int64_t age_ns(std::int64_t now_ns) const {
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(now_ns) - (word_ >> 16)) & 0xffff'ffff'ffff);
  }
  [[nodiscard]] constexpr std::uint64_t word() const { return word_; }
  constexpr bool operator==(const ClockRequest&) const = default;

 private:
  std::uint64_t word_ = 0;
};

/// A text that one side writes once, and the other reads after it was announced.
class SharedText {
 public:
  void write(std::string_view text);  ///< longer than 511 bytes is cut; a second call does nothing
  void forget() { written_.store(0, std::memory_order_relaxed); }  ///< while nobody writes or reads
  [[nodiscard]] std::string read() const;

 private:
  std::atomic<std::uint32_t> written_{0};
  char text_[512] = {};
};

/// What the helper says of itself.
enum class HelperState : std::uint32_t { starting, working, refused, lost };

struct Mailbox {
  static constexpr std::uint32_t kMagic = 0x50434c4b;
  static constexpr std::uint32_t kLayout = 4;  ///< counts up with every change of this struct
  const std::uint32_t magic = kMagic, layout = kLayout;
  std::atomic<std::int64_t> start_limit_ns{0};  ///< how long the helper may take to be ready

  // From the training process.
  alignas(64) std::atomic<std::uint64_t> target{0};  ///< the newest ClockRequest; 0: none yet
  std::atomic<std::int64_t> requested{0};
  std::atomic<std::int32_t> posted_on_cpu{-1};  ///< where the training thread ran when it posted
  std::atomic<std::uint32_t> number{0};         ///< of `target` in its step: 0, 1, 2, ...
  std::atomic<std::uint32_t> next_number{0};    ///< the training process's own
  std::atomic<std::int64_t> woken{0};           ///< requests that had to wake the helper

  // What the training process looks at with every request, in one line of the cache.
  // Both: 1 while the helper sleeps, or is about to after another look at `target`. Who posts takes it back and wakes.
  alignas(64) std::atomic<std::uint32_t> asleep{0};
  std::atomic<HelperState> state{HelperState::starting};  ///< the helper's

  // From the helper.
  alignas(64) std::atomic<std::uint64_t> handled{0};  ///< the newest request that is done with, applied or failed
  std::atomic<std::uint32_t> clock_set_mhz{0};        ///< that the device was told last; 0: it has none of ours
  std::atomic<std::int64_t> told_at_ns{0};            ///< when
  std::atomic<std::int64_t> applied{0}, failed{0};
  std::atomic<std::uint32_t> locked{0};  ///< 1: the device's clock may be locked by us
  SharedText why_ended;                  ///< of refused or lost
  LatencyHistogram request_to_device, device_call, request_to_clock;

  /// Has what post() needs fetched, all of it at once instead of one thing after the other.
  void expect_post() const noexcept {
    __builtin_prefetch(&target, 1);
    __builtin_prefetch(&asleep);
  }
  /// The newest target; `wake_fd`: the helper's eventfd. Nothing happens if it is the target already.
  /// Async-signal-safe.
  [[gnu::hot]] void post(Megahertz clock, int wake_fd) noexcept;
  /// The next request is the first of a training step.
  void begin_step() noexcept { next_number.store(0, std::memory_order_relaxed); }
  /// For the next helper, while there is none: it finds the newest target, and goes on counting.
  void begin_again() noexcept;
  /// The helper is about to sleep: false if something newer than `seen` was posted meanwhile.
  bool may_sleep(ClockRequest seen) noexcept;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// A new mailbox in a memfd that cannot change its size; -1 and errno if there is none. The fd is closed on exec.
int create_mailbox_fd() noexcept;
/// Maps it; null if it is none, or one of another layout.
Mailbox* map_mailbox(int fd) noexcept;
void unmap_mailbox(Mailbox* mailbox) noexcept;

}  // namespace perseus
