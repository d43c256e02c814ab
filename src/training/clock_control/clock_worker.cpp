#include "training/clock_control/clock_worker.h"

#include <algorithm>
#include <utility>

namespace perseus::clock_control {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr int kAttempts = 8;                                // pauses of 1, 2, 4, ... 64 ms between them
constexpr std::int64_t kLookEvery = kMillisecond / 4;       // while watching the clock change
constexpr std::int64_t kLookAtMost = 100 * kMillisecond;    // a throttled GPU never gets there
constexpr std::int64_t kAlwaysWatched = 8, kWatchOne = 64;  // of this many changes
constexpr std::int64_t kLooksApart = kMillisecond;          // two readings at most this far apart bound an arrival
constexpr std::int64_t kLooksInLatency = 4;                 // or this fraction of its latency

}  // namespace

ClockWorker::ClockWorker(Mailbox& mailbox, device::Gpu& gpu, Lease& lease, Now now)
    : mailbox_(mailbox), gpu_(gpu), lease_(lease), now_(std::move(now)) {}

device::DeviceStatus ClockWorker::begin() {
  if (lease_.recorded()) {
    if (device::DeviceStatus restored = give_back(); !restored) return restored;
  }
  if (auto clocks = gpu_.supported_clocks()) supported_ = std::move(*clocks);
  mailbox_.locked.store(0, std::memory_order_relaxed);
  if (const auto last = mailbox_.queue.last_taken()) {
    inherited_ = last->index;
    inherited_counts_ = last->index > mailbox_.handled.load(std::memory_order_relaxed);
    see(*last);
    mailbox_.handled.store(last->index - 1, std::memory_order_relaxed);
  }
  // A change that became due while no helper ran.
  if (const auto due = mailbox_.queue.take_due()) {
    inherited_ = due->index;
    inherited_counts_ = true;
    see(*due);
  }
  mailbox_.state.store(HelperState::working, std::memory_order_release);
  return Ok{};
}

void ClockWorker::see(const ClockQueue::Taken& taken) {
  seen_ = taken;
  const std::int64_t now = now_();
  due_since_ns_ = taken.change.now ? taken.change.posted_ns : now;
  pending_ = true;
  attempts_ = 0;
  due_ns_ = 0;
  watching_ = false;
}

std::int64_t ClockWorker::work() {
  const std::int64_t looked_ns = std::exchange(looked_ns_, now_());  // a sign of life for the supervisor
  posted_before_ = mailbox_.queue.posted();
  if (const auto due = mailbox_.queue.take_due()) {
    see(*due);
    const bool moment_is_known = due->change.now || mailbox_.position_wakes.load(std::memory_order_relaxed);
    rhythm_.requested(due->number, due_since_ns_, moment_is_known ? due_since_ns_ : looked_ns);
  }
  if (pending_ && now_() >= due_ns_) apply();
  if (watching_ && now_() >= watch_due_ns_) watch_clock();
  if (pending_) return std::max<std::int64_t>(due_ns_ - now_(), 0);
  if (watching_) return std::max<std::int64_t>(watch_due_ns_ - now_(), 0);
  return -1;
}

void ClockWorker::apply() {
  const std::int64_t began = now_();
  const ClockChange& change = seen_.change;
  const device::DeviceStatus set = set_device(Megahertz(change.clock_mhz));
  const std::int64_t ended = now_();
  if (set) {
    applied(began, ended);
  } else if (set.error().fault == device::DeviceFault::busy && ++attempts_ < kAttempts) {
    due_ns_ = ended + (kMillisecond << (attempts_ - 1));
  } else {
    failed(set.error());
  }
}

device::DeviceStatus ClockWorker::set_device(Megahertz clock) {
  if (clock.value() == 0) {
    if (device::DeviceStatus unlocked = unlock(); !unlocked) return unlocked;
    clock_set_ = clock;
    return Ok{};
  }
  device::DeviceStatus locked = lock(supported_above(clock));
  if (!locked && locked.error().fault == device::DeviceFault::bad_clock) {
    // The list depends on the memory clock, which another process may have changed.
    if (auto clocks = gpu_.supported_clocks()) supported_ = std::move(*clocks);
    locked = lock(supported_above(clock));
  }
  if (locked) clock_set_ = supported_above(clock);
  return locked;
}

device::DeviceStatus ClockWorker::lock(Megahertz clock) {
  const bool first = !lease_.recorded();
  if (device::DeviceStatus recorded = lease_.record(); !recorded) return recorded;
  mailbox_.locked.store(1, std::memory_order_release);
  device::DeviceStatus locked = gpu_.lock_clock(clock);
  // A call that certainly did not lock needs no unlocking; one that timed out may have locked.
  if (!locked && first &&
      (locked.error().fault == device::DeviceFault::no_permission ||
       locked.error().fault == device::DeviceFault::not_supported ||
       locked.error().fault == device::DeviceFault::bad_clock)) {
    lease_.clear();
    mailbox_.locked.store(0, std::memory_order_release);
  }
  return locked;
}

device::DeviceStatus ClockWorker::unlock() {
  if (!lease_.recorded()) return Ok{};
  device::DeviceStatus unlocked = gpu_.unlock_clock();
  if (!unlocked) return unlocked;
  lease_.clear();
  mailbox_.locked.store(0, std::memory_order_release);
  return Ok{};
}

device::DeviceStatus ClockWorker::give_back() {
  if (!lease_.recorded()) return Ok{};
  device::DeviceStatus unlocked = unlock_patiently(gpu_);
  if (!unlocked) return unlocked;
  lease_.clear();
  mailbox_.clock_set_mhz.store(0, std::memory_order_relaxed);
  mailbox_.locked.store(0, std::memory_order_release);
  return Ok{};
}

void ClockWorker::applied(std::int64_t began, std::int64_t ended) {
  pending_ = false;
  const bool ours = seen_.index != inherited_;  // the time without a helper is no latency
  const std::int64_t count = mailbox_.applied.load(std::memory_order_relaxed) + (ours || inherited_counts_ ? 1 : 0);
  mailbox_.device_call.record(ended - began);
  if (ours) mailbox_.request_to_device.record(ended - due_since_ns_);
  mailbox_.applied_clocks.write({began, clock_set_.value(), seen_.change.position, !seen_.change.now});
  mailbox_.clock_set_mhz.store(static_cast<std::uint32_t>(clock_set_.value()), std::memory_order_relaxed);
  mailbox_.clock_set_at_ns.store(ended, std::memory_order_relaxed);
  mailbox_.applied.store(count, std::memory_order_relaxed);
  mailbox_.handled.store(seen_.index, std::memory_order_release);
  watch_arrival(began, ended, ours && (count <= kAlwaysWatched || (count + 1) % kWatchOne <= 1));
}

void ClockWorker::failed(const device::DeviceError& error) {
  pending_ = false;
  const std::int64_t failed = mailbox_.failed.load(std::memory_order_relaxed);
  mailbox_.failed.store(failed + (seen_.index != inherited_ || inherited_counts_ ? 1 : 0), std::memory_order_relaxed);
  switch (error.fault) {
    case device::DeviceFault::busy:
    case device::DeviceFault::bad_clock:
      break;  // the next request may succeed
    case device::DeviceFault::no_permission:
    case device::DeviceFault::not_supported:
      // A clock set before the refusal must not stay.
      (void)give_back();
      end(HelperState::refused, error);
      break;
    case device::DeviceFault::lost:
    case device::DeviceFault::no_driver:
      end(HelperState::lost, error);
      break;
  }
  mailbox_.handled.store(seen_.index, std::memory_order_release);
}

void ClockWorker::end(HelperState state, const device::DeviceError& error) {
  mailbox_.why_ended.write(error.message);
  mailbox_.state.store(state, std::memory_order_release);
  ended_ = true;
}

Megahertz ClockWorker::supported_above(Megahertz clock) const {
  if (supported_.empty()) return clock;
  Megahertz best = supported_.front();
  for (const Megahertz supported : supported_) {
    if (supported >= clock && supported < best) best = supported;
  }
  return best;
}

/// If two changes overlap, a clock cannot be attributed to either: the second has no latency.
void ClockWorker::watch_arrival(std::int64_t began, std::int64_t ended, bool wanted) {
  const bool moved = clock_set_ != clock_set_before_;
  watching_ = wanted && moved && clock_set_.value() != 0;
  if (!moved) return;
  settled_ = arrived_ || began - called_ns_ > kLookAtMost;
  elsewhere_ = settled_ && clock_set_before_.value() != 0;
  arrived_ = false;
  clock_set_before_ = clock_set_;
  called_ns_ = began;
  watched_ns_ = ended;
  watch_due_ns_ = 0;
}

void ClockWorker::watch_clock() {
  const auto clock = gpu_.clock();
  const std::int64_t now = now_(), age = now - called_ns_;
  const bool there = clock && *clock == clock_set_;
  const bool close = now - watched_ns_ <= std::max(kLooksApart, age / kLooksInLatency);
  if (there && settled_ && elsewhere_ && close) mailbox_.call_to_clock.record(age);
  arrived_ = there && (settled_ || elsewhere_);
  elsewhere_ = elsewhere_ || (clock && !there);
  watched_ns_ = now;
  watching_ = clock && !there && age < kLookAtMost;
  watch_due_ns_ = now + kLookEvery;
}

Rest ClockWorker::rest(std::int64_t due_ns) const {
  if (!mailbox_.queue.waits_for_device()) return rest_until(rhythm_.next(), now_(), due_ns);
  if (mailbox_.position_wakes.load(std::memory_order_relaxed)) return {due_ns, HelperRest::dozing};
  return doze_until(rhythm_.next(mailbox_.queue.next_number()), due_since_ns_, now_(), due_ns);
}

}  // namespace perseus::clock_control
