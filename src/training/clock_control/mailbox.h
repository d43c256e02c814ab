// Shared memory of a training process and its helper: clock changes one way, applied clocks and latencies the other.
//
// Input:   post(clock, position): from that position of the device on; post_now(clock): at once, replacing all
//          changes that still wait.
// Output:  the clocks that the helper applied, when, and how long it took.
// Errors:  none here; the text of a failure is written once and then announced.
// Cost:    post() a few stores and one clock reading, and one write to an eventfd if the helper sleeps.
// Threads: one posts, one applies (in any two processes), any read. Every member is a lock-free atomic, or written
//          before an atomic that announces it.
// Source:  docs/clock_control.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "training/clock_control/applied_clocks.h"
#include "training/clock_control/clock_limit.h"
#include "training/clock_control/clock_queue.h"
#include "training/clock_control/device_clock.h"
#include "training/clock_control/latency_histogram.h"

namespace perseus::clock_control {

std::int64_t monotonic_ns() noexcept;  ///< CLOCK_MONOTONIC, the same in all processes of a machine

/// A text that one side writes once, and that the other reads after its announcement.
class SharedText {
 public:
  void write(std::string_view text);  ///< cuts texts longer than 511 bytes; a second call does nothing
  void forget() { written_.store(0, std::memory_order_relaxed); }  ///< call while no thread writes or reads
  [[nodiscard]] std::string read() const;

 private:
  std::atomic<std::uint32_t> written_{0};
  char text_[512] = {};
};

/// A DeviceClock that one side writes; the other one may see it half written.
class SharedDeviceClock {
 public:
  void write(const DeviceClock& clock) noexcept;
  [[nodiscard]] DeviceClock read() const noexcept;
  void forget() noexcept { write({}); }  ///< but not given_up
  void give_up() noexcept { given_up_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<std::int32_t> set_{0}, other_{0}, foreign_clock_{0};
  std::atomic<std::uint32_t> limited_by_{0};
  std::atomic<std::int64_t> foreign_{0}, given_up_{0};
};

/// State of the helper, written by the helper.
enum class HelperState : std::uint32_t { starting, working, refused, lost };

/// How the helper rests, which tells the poster whether to wake it.
enum class HelperRest : std::uint32_t {
  awake,   ///< awake, or soon awake by itself
  asleep,  ///< every change must wake it
  dozing   ///< reads the device's position periodically: only a change for "now" wakes it
};

struct Mailbox {
  static constexpr std::uint32_t kMagic = 0x50434c4b;
  static constexpr std::uint32_t kLayout = 12;  ///< increases with every change of this struct
  const std::uint32_t magic = kMagic, layout = kLayout;
  std::atomic<std::int64_t> start_limit_ns{0};  ///< time for the helper to get ready

  // From the training process.
  alignas(64) std::atomic<std::int32_t> newest_mhz{-1};  ///< posted last; -1: none yet
  std::atomic<std::int32_t> posted_on_cpu{-1};           ///< CPU of the training thread when it posted
  std::atomic<bool> step_begins{true};  ///< used by the training process: the next change is a step's first
  std::atomic<std::int64_t> woken{0};   ///< changes that had to wake the helper
  /// A CPU that wakes the helper writes the device's position, so the helper need not poll it.
  std::atomic<bool> position_wakes{false};
  alignas(64) ClockLimit limit;  ///< of a power budget

  // The training process reads these with every change; in one cache line.
  alignas(64) std::atomic<HelperRest> rest{HelperRest::awake};
  std::atomic<HelperState> state{HelperState::starting};  ///< the helper's

  // From the helper.
  alignas(64) std::atomic<std::uint64_t> handled{0};  ///< index of the newest completed change, applied or failed
  std::atomic<std::uint32_t> clock_set_mhz{0};        ///< last clock set on the device; 0: it has none of ours
  std::atomic<std::int64_t> clock_set_at_ns{0};       ///< when
  std::atomic<std::int64_t> applied{0}, failed{0};
  std::atomic<std::uint32_t> awaits_lease{0};  ///< 1: a helper starts; its next step is to take the lease
  std::atomic<std::uint32_t> locked{0};        ///< 1: the device's clock may be locked by us
  SharedText why_ended;                        ///< of refused or lost
  SharedText lease;                            ///< path of the helper's lease
  SharedDeviceClock device_clock;
  /// From "due" (posted for now, or observed to be due) until the device call has returned; the call alone; from the
  /// call's begin until the device ran at the clock.
  LatencyHistogram request_to_device, device_call, call_to_clock;
  AppliedClocks applied_clocks;

  ClockQueue queue;

  /// Prefetches memory that post() needs.
  void expect_post() const noexcept {
    __builtin_prefetch(&newest_mhz, 1);
    __builtin_prefetch(&rest);
  }
  /// Sets the device to `clock` from that position on. Does nothing if that is the newest clock already. `wake_fd`:
  /// the helper's eventfd. Async-signal-safe.
  [[gnu::hot]] void post(Megahertz clock, std::uint32_t position, int wake_fd) noexcept;
  /// The same at once; changes that still wait for the device are dropped.
  [[gnu::hot]] void post_now(Megahertz clock, int wake_fd) noexcept;
  /// A CPU reports that the device has reached that position: stores it (unless the stored one is later) and wakes
  /// the helper.
  void reached(std::uint32_t position, int wake_fd) noexcept;
  /// Call after a change of `limit` that the helper must see.
  void limit_changed(int wake_fd) noexcept;
  /// The next change is the first of a training step.
  void begin_step() noexcept { step_begins.store(true, std::memory_order_relaxed); }
  /// Call while there is no helper: the next helper begins with the newest due change, and continues the counts.
  void begin_again() noexcept;
  /// Call before the helper rests: false if a change was posted since `seen` (ClockQueue::posted()), or the limit
  /// has changed since `seen_limit` (ClockLimit::changes()).
  bool may_rest(HelperRest how, std::uint64_t seen, std::uint32_t seen_limit) noexcept;
  /// A change is due and the helper has not completed it.
  [[nodiscard]] bool owes_answer() const noexcept;

 private:
  void post_change(ClockChange change, int wake_fd) noexcept;
  void wake(int wake_fd) noexcept;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// A new mailbox in a memfd of fixed size; -1 and errno on failure. The fd is closed on exec.
int create_mailbox_fd() noexcept;
/// Maps it; null if the fd is no mailbox, or one of another layout.
Mailbox* map_mailbox(int fd) noexcept;
void unmap_mailbox(Mailbox* mailbox) noexcept;
/// Size of the mapping: whole pages.
std::size_t mailbox_bytes() noexcept;

/// Number of forks between the process that loaded this code and this process; counted from prepare_process() on.
/// Inline: every call of ClockController::set() reads it.
inline std::atomic<int>& fork_generation() {
  static std::atomic<int> generation{0};
  return generation;
}

/// From now on, counts forks (a forked child owns no helper), and at exit asks in each open mailbox of this process to
/// unlock, waits up to 2 s for the helpers' answers, and prints a line for each clock that stays locked: where this
/// process is process 1 of a container, its end kills the helpers too.
void prepare_process();

/// `wake`: the eventfd of the helper; `generation`: of the process that owns the mailbox; `left_locked`: at exit, once
/// no helper works: gives a locked clock back, or returns what is to be said of it.
void add_open_mailbox(Mailbox& mailbox, int wake, int generation, std::function<std::string()> left_locked);
void remove_open_mailbox(const Mailbox* mailbox);

}  // namespace perseus::clock_control
