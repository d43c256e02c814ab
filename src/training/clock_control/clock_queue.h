// Queue of clock changes between a training process that runs ahead and a device that gets there later.
//
// Input:   changes (position, clock) in the order of the device's work; the device's position, written by the device
//          itself (a stream write), by a driver callback, or not at all (changes for "now"). Positions grow by one
//          per boundary (begin or end of a computation) and wrap at 2^32.
// Output:  the newest change that is due: its position is reached. Older ones are superseded, never applied late.
// Errors:  a full queue merges the new change into the newest one, at the higher of both clocks (never slower than
//          planned), and counts it.
// Cost:    post() three stores; take_due() one comparison per change taken. 16 bytes per change.
// Threads: one process posts, one takes; a third party may write the position. Lock-free atomics only, so that the
//          queue can lie in shared memory.
// Source:  docs/decisions/0030-clocks-at-device-time.md.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace perseus::clock_control {

struct ClockChange {
  std::uint32_t position = 0;
  std::uint16_t clock_mhz = 0;
  bool now = false;            ///< due at once, whatever the position
  bool begins_step = false;    ///< the first change of a training step
  std::int64_t posted_ns = 0;  ///< CLOCK_MONOTONIC
};

class ClockQueue {
 public:
  static constexpr std::uint64_t kCapacity = 8192;

  // ---- The training process.
  void post(const ClockChange& change) noexcept {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    // The change taken last stays readable for the next helper.
    if (tail - head_.load(std::memory_order_acquire) >= kCapacity - 1) return merge(tail - 1, change);
    write(tail, change);
    if (change.now) now_tail_.store(tail + 1, std::memory_order_release);
    // Sequentially consistent with Mailbox::asleep: either the helper sees this change or the poster sees it asleep.
    tail_.store(tail + 1, std::memory_order_seq_cst);
  }
  [[nodiscard]] std::uint64_t posted() const noexcept { return tail_.load(std::memory_order_seq_cst); }
  /// The newest change is for now, so no change waits for the device.
  [[nodiscard]] bool newest_is_now() const noexcept {
    return now_tail_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t merged() const noexcept { return merged_.load(std::memory_order_relaxed); }

  // ---- The device, or whatever knows its position.
  /// The device writes its position here; this is the address to register with the driver.
  [[nodiscard]] std::atomic<std::uint32_t>& position() noexcept { return position_; }

  // ---- The helper.
  struct Taken {
    ClockChange change;
    std::uint64_t index = 0;  ///< of the change among all posted ones, from 1
    /// Position of the change in its training step: boundaries since the step's first change; for "now": changes
    /// since.
    std::uint32_t number = 0;
  };
  /// The newest due change that was not taken before.
  std::optional<Taken> take_due() noexcept {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    // A training process may write anything here; the helper's work stays bounded.
    const std::uint64_t oldest = tail - std::min(tail, kCapacity);
    const std::uint64_t head = std::clamp(head_.load(std::memory_order_relaxed), oldest, tail);
    std::uint64_t next = std::clamp(now_tail_.load(std::memory_order_acquire), head, tail);
    const std::uint32_t here = position_.load(std::memory_order_acquire);
    while (next < tail && is_due(read(next), here)) ++next;
    if (next == head) return std::nullopt;
    std::uint32_t number = number_.load(std::memory_order_relaxed);
    for (std::uint64_t i = head; i < next; ++i) {
      const ClockChange change = read(i);
      if (change.begins_step) step_position_.store(change.position, std::memory_order_relaxed);
      number = number_of(change, number);
    }
    number_.store(number, std::memory_order_relaxed);
    const Taken taken{read(next - 1), next, number};
    head_.store(next, std::memory_order_release);
    return taken;
  }
  /// The change taken last, for a helper that follows another one.
  [[nodiscard]] std::optional<Taken> last_taken() const noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == 0) return std::nullopt;
    return Taken{read(head - 1), head, number_.load(std::memory_order_relaxed)};
  }
  /// The number of the next change that waits for the device; nullopt: none waits.
  [[nodiscard]] std::optional<std::uint32_t> next_number() const noexcept {
    if (!waits_for_device()) return std::nullopt;
    return number_of(read(head_.load(std::memory_order_relaxed)), number_.load(std::memory_order_relaxed));
  }
  /// A change waits for the device to reach its position.
  [[nodiscard]] bool waits_for_device() const noexcept {
    return head_.load(std::memory_order_relaxed) != tail_.load(std::memory_order_acquire);
  }
  /// A change is due that no helper has taken. Sequentially consistent, see Mailbox::may_rest().
  [[nodiscard]] bool has_due() const noexcept {
    const std::uint64_t tail = tail_.load(std::memory_order_seq_cst), head = head_.load(std::memory_order_acquire);
    if (head == tail) return false;
    return now_tail_.load(std::memory_order_acquire) > head ||
           is_due(read(head), position_.load(std::memory_order_seq_cst));
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> word{0};  ///< position, clock, flags
    std::atomic<std::int64_t> posted_ns{0};
  };
  static constexpr std::uint64_t kNow = 1, kBeginsStep = 2;

  static bool is_due(const ClockChange& change, std::uint32_t here) noexcept {
    return change.now || static_cast<std::int32_t>(here - change.position) >= 0;
  }
  [[nodiscard]] std::uint32_t number_of(const ClockChange& change, std::uint32_t before) const noexcept {
    if (change.begins_step) return 0;
    return change.now ? before + 1 : change.position - step_position_.load(std::memory_order_relaxed);
  }
  void write(std::uint64_t index, const ClockChange& change) noexcept {
    Slot& slot = slots_[index % kCapacity];
    slot.posted_ns.store(change.posted_ns, std::memory_order_relaxed);
    slot.word.store((std::uint64_t{change.position} << 32) | (std::uint64_t{change.clock_mhz} << 16) |
                        (change.now ? kNow : 0) | (change.begins_step ? kBeginsStep : 0),
                    std::memory_order_release);
  }
  [[nodiscard]] ClockChange read(std::uint64_t index) const noexcept {
    const Slot& slot = slots_[index % kCapacity];
    const std::uint64_t word = slot.word.load(std::memory_order_acquire);
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint16_t>(word >> 16), (word & kNow) != 0,
            (word & kBeginsStep) != 0, slot.posted_ns.load(std::memory_order_relaxed)};
  }
  /// Call when the queue is full: the newest change is then far from being taken.
  void merge(std::uint64_t newest, ClockChange change) noexcept {
    const ClockChange before = read(newest);
    change.clock_mhz = std::max(change.clock_mhz, before.clock_mhz);
    change.begins_step |= before.begins_step;
    if (!change.now) change.position = before.position;
    write(newest, change);
    if (change.now) now_tail_.store(newest + 1, std::memory_order_release);
    merged_.fetch_add(1, std::memory_order_relaxed);
  }

  alignas(64) std::atomic<std::uint32_t> position_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};  ///< changes posted
  std::atomic<std::uint64_t> now_tail_{0};          ///< ... up to the newest one for "now"
  std::atomic<std::int64_t> merged_{0};
  alignas(64) std::atomic<std::uint64_t> head_{0};  ///< changes taken
  std::atomic<std::uint32_t> step_position_{0};     ///< of the first change of the step of the last taken change
  std::atomic<std::uint32_t> number_{0};            ///< of the change taken last, in its step
  std::array<Slot, kCapacity> slots_{};
};

}  // namespace perseus::clock_control
