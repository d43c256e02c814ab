#include "training/clock_control/clock_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace perseus::clock_control {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr int kAttempts = 8;                                // pauses of 1, 2, 4, ... 64 ms between them
constexpr std::int64_t kSilentAfter = 5000 * kMillisecond;  // of a driver that answers no call
constexpr std::int64_t kLookEvery = kMillisecond / 4;       // while watching the clock change
constexpr std::int64_t kLookAtMost = 100 * kMillisecond;    // a throttled GPU never gets there
constexpr std::int64_t kAlwaysWatched = 8, kWatchOne = 64;  // of this many changes
constexpr std::int64_t kLooksApart = kMillisecond;          // two readings at most this far apart bound an arrival
constexpr std::int64_t kLooksInLatency = 4;                 // or this fraction of its latency

}  // namespace

ClockWorker::ClockWorker(Mailbox& mailbox, device::Gpu& gpu, Lease& lease, Now now)
    : mailbox_(mailbox), gpu_(gpu), lease_(lease), now_(std::move(now)) {}

device::DeviceStatus ClockWorker::begin() {
  // Under a budget a clock that is locked stays locked until this helper sets another: never the driver's choice.
  const bool keeps = mailbox_.limit.ceiling().value() != 0 && lease_.recorded();
  mailbox_.locked.store(lease_.recorded() ? 1 : 0, std::memory_order_release);
  if (lease_.recorded() && !keeps) {
    if (device::DeviceStatus restored = give_back(); !restored) return restored;
  }
  if (auto clocks = gpu_.supported_clocks()) supported_ = std::move(*clocks);
  mailbox_.locked.store(keeps ? 1 : 0, std::memory_order_relaxed);
  limiting_ = keeps;  // also if the budget ends before the first work()
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
  look_at_limit(looked_ns_);
  if (const auto due = mailbox_.queue.take_due()) {
    see(*due);
    const bool moment_is_known = due->change.now || mailbox_.position_wakes.load(std::memory_order_relaxed);
    rhythm_.requested(due->number, due_since_ns_, moment_is_known ? due_since_ns_ : looked_ns);
  }
  if (!pending_ && !limiting_ && !ended_ && watch_.due(now_(), false)) look_at_clock(false);
  if ((pending_ || limiting_) && now_() >= due_ns_) apply();
  if (watching_ && now_() >= watch_due_ns_) watch_clock();
  std::int64_t due = std::numeric_limits<std::int64_t>::max();
  if (pending_ || limiting_) {
    due = due_ns_;
  } else if (watching_) {
    due = watch_due_ns_;
  }
  if (const std::int64_t expires = mailbox_.limit.next_ns(); expires != 0) due = std::min(due, expires);
  return due == std::numeric_limits<std::int64_t>::max() ? -1 : std::max<std::int64_t>(due - now_(), 0);
}

void ClockWorker::look_at_limit(std::int64_t now_ns) {
  limit_before_ = mailbox_.limit.changes();
  const ClockBounds bounds = mailbox_.limit.at(now_ns);
  if (bounds == bounds_) return;
  bounds_ = bounds;
  limiting_ = target() != clock_set_;
  if (!limiting_) return;
  attempts_ = 0;
  due_ns_ = 0;
}

void ClockWorker::apply() {
  if (pending_ && target() != clock_set_ && watch_.due(now_(), true)) {
    look_at_clock(true);
    if (ended_) return;
  }
  const std::int64_t began = now_();
  const device::DeviceStatus set = set_device();
  const std::int64_t ended = now_();
  if (set || set.error().fault != device::DeviceFault::busy) {
    unanswered_ = 0;
    return set ? applied(began, ended) : failed(set.error());
  }
  if (driver_is_silent(began, ended)) {
    return failed({device::DeviceFault::lost, fmt::format("the driver has answered no call for {} s: {}",
                                                          kSilentAfter / (1000 * kMillisecond), set.error().message)});
  }
  if (++attempts_ == kAttempts && pending_) {
    failed(set.error());
    limiting_ = true;
  }
  due_ns_ = ended + (kMillisecond << (std::min(attempts_, kAttempts - 1) - 1));
}

bool ClockWorker::driver_is_silent(std::int64_t began, std::int64_t ended) {
  if (unanswered_++ == 0) unanswered_since_ns_ = began;
  return unanswered_ >= kAttempts && ended - unanswered_since_ns_ >= kSilentAfter;
}

/// Whether the device runs at the clock that was set. `changes`: another one is about to be set.
void ClockWorker::look_at_clock(bool changes) {
  const auto clock = gpu_.clock();
  const auto events = gpu_.clock_events();
  if (!clock) return no_reading(clock.error());
  unread_since_ns_ = 0;
  // AMD's clock is a limit: below it the GPU follows, also where it idles, and nothing gives a reason.
  const bool within =
      gpu_.identity().amd && (*clock < clock_set_ || device::runs_at(gpu_.identity(), clock_set_, *clock));
  const ClockWatch::Advice advice =
      watch_.read(within ? clock_set_ : *clock, events ? *events : device::ClockEvents{}, changes, now_());
  mailbox_.device_clock.write(watch_.found());
  if (advice == ClockWatch::Advice::none) return;
  const bool budget = mailbox_.limit.ceiling().value() != 0;  // kept as long as it lasts
  if (advice == ClockWatch::Advice::set_again || budget) {
    limiting_ = true;
    attempts_ = 0;
    due_ns_ = 0;
    return;
  }
  failed({device::DeviceFault::not_supported, watch_.why()});
  mailbox_.device_clock.give_up();
}

/// A device that does not answer may still take clocks.
void ClockWorker::no_reading(const device::DeviceError& error) {
  const std::int64_t now = now_();
  if (error.fault == device::DeviceFault::lost || error.fault == device::DeviceFault::no_driver) return failed(error);
  watch_.set(error.fault == device::DeviceFault::busy ? clock_set_ : Megahertz(0), now);
  if (unread_since_ns_ == 0) unread_since_ns_ = now;
  if (error.fault != device::DeviceFault::busy || now - unread_since_ns_ < kSilentAfter) return;
  unread_since_ns_ = now;
  limiting_ = true;
  due_ns_ = 0;
}

device::DeviceStatus ClockWorker::set_device() {
  if (target().value() == 0) {
    if (device::DeviceStatus unlocked = unlock(); !unlocked) return unlocked;
    clock_set_ = Megahertz(0);
    return Ok{};
  }
  device::DeviceStatus locked = lock(target());
  if (!locked && locked.error().fault == device::DeviceFault::bad_clock) {
    // The list depends on the memory clock, which another process may have changed.
    if (auto clocks = gpu_.supported_clocks()) supported_ = std::move(*clocks);
    locked = lock(target());
  }
  if (locked) clock_set_ = target();
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
  watch_.set(Megahertz(0), now_());
  if (device::DeviceStatus given = give_back_patiently(gpu_, lease_); !given) return given;
  mailbox_.clock_set_mhz.store(0, std::memory_order_relaxed);
  mailbox_.locked.store(0, std::memory_order_release);
  return Ok{};
}

device::DeviceStatus ClockWorker::keep_ceiling() {
  const Megahertz ceiling = device::highest_within(supported_, mailbox_.limit.least_ceiling());
  if (device::DeviceStatus recorded = lease_.record(); !recorded) return recorded;
  mailbox_.locked.store(1, std::memory_order_release);
  return limit_patiently(gpu_, ceiling);
}

void ClockWorker::applied(std::int64_t began, std::int64_t ended) {
  const bool request = std::exchange(pending_, false);  // else only the limits have changed
  limiting_ = false;
  const bool ours = request && seen_.index != inherited_;  // the time without a helper is no latency
  const bool counts = request && (ours || inherited_counts_);
  const std::int64_t count = mailbox_.applied.load(std::memory_order_relaxed) + (counts ? 1 : 0);
  mailbox_.device_call.record(ended - began);
  if (ours) mailbox_.request_to_device.record(ended - due_since_ns_);
  const bool limited = bounds_ != ClockBounds{} && clock_set_ != requested();
  const bool at_device_time = request && !seen_.change.now;
  mailbox_.applied_clocks.write({began, clock_set_.value(), seen_.change.position, at_device_time, limited});
  mailbox_.clock_set_mhz.store(static_cast<std::uint32_t>(clock_set_.value()), std::memory_order_relaxed);
  mailbox_.clock_set_at_ns.store(ended, std::memory_order_relaxed);
  watch_.set(clock_set_, ended);
  mailbox_.applied.store(count, std::memory_order_relaxed);
  mailbox_.handled.store(seen_.index, std::memory_order_release);
  watch_arrival(began, ended, ours && (count <= kAlwaysWatched || (count + 1) % kWatchOne <= 1));
}

void ClockWorker::failed(const device::DeviceError& error) {
  const bool request = std::exchange(pending_, false);
  limiting_ = false;
  const bool counts = request && (seen_.index != inherited_ || inherited_counts_);
  const std::int64_t failed = mailbox_.failed.load(std::memory_order_relaxed);
  mailbox_.failed.store(failed + (counts ? 1 : 0), std::memory_order_relaxed);
  switch (error.fault) {
    case device::DeviceFault::busy:
      break;
    case device::DeviceFault::bad_clock:
      // The next request may succeed. Until then a lower clock must not stay.
      if (bounds_.unlocked.value() == 0 && clock_set_.value() != 0 && clock_set_ < requested() && unlock()) {
        clock_set_ = Megahertz(0);
        watch_.set(clock_set_, now_());
        mailbox_.clock_set_mhz.store(0, std::memory_order_relaxed);
      }
      break;
    case device::DeviceFault::no_permission:
    case device::DeviceFault::not_supported: {
      // A clock set before the refusal must not stay.
      device::DeviceError refused = error;
      mailbox_.state.store(HelperState::starting, std::memory_order_release);  // the watchdog does not limit this
      if (const device::DeviceStatus given = give_back(); !given) {
        refused.message +=
            "; the clock stays locked until perseus-clockd --restore, or the next helper, may give it back";
        if (given.error().message != error.message) refused.message += ": " + given.error().message;
      }
      end(HelperState::refused, refused);
      break;
    }
    case device::DeviceFault::lost:
    case device::DeviceFault::no_driver:
      end(HelperState::lost, error);
      break;
  }
  mailbox_.handled.store(seen_.index, std::memory_order_release);
}

void ClockWorker::end(HelperState state, const device::DeviceError& error) {
  mailbox_.why_ended.write(error.message);
  mailbox_.device_clock.forget();
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

Megahertz ClockWorker::requested() const {
  const Megahertz clock(seen_.change.clock_mhz);
  return clock.value() == 0 ? clock : supported_above(clock);
}

Megahertz ClockWorker::target() const {
  const Megahertz clock = requested();
  if (clock.value() == 0)
    return bounds_.unlocked.value() == 0 ? clock : device::highest_within(supported_, bounds_.unlocked);
  return bounds_.locked.value() == 0 ? clock : std::min(clock, device::highest_within(supported_, bounds_.locked));
}

/// If two changes overlap, a clock cannot be attributed to either: the second has no latency.
void ClockWorker::watch_arrival(std::int64_t began, std::int64_t ended, bool wanted) {
  const bool moved = clock_set_ != clock_set_before_;
  watching_ = wanted && moved && clock_set_.value() != 0;
  if (!moved) return;
  settled_ = arrived_ || began - called_ns_ > kLookAtMost;
  elsewhere_ = settled_ && clock_set_before_.value() != 0;
  elsewhere_from_ = clock_set_before_;
  arrived_ = false;
  clock_set_before_ = clock_set_;
  called_ns_ = began;
  watched_ns_ = ended;
  watch_due_ns_ = 0;
}

/// Some devices run a step or two below the clock that they were set to.
bool ClockWorker::arrived_at(Megahertz clock) const {
  const auto apart = [&](Megahertz other) { return std::abs(clock.value() - other.value()); };
  return ClockWatch::alike(clock, clock_set_) &&
         (elsewhere_from_.value() == 0 || apart(clock_set_) < apart(elsewhere_from_));
}

void ClockWorker::watch_clock() {
  const auto clock = gpu_.clock();
  const std::int64_t now = now_(), age = now - called_ns_;
  const bool there = clock && arrived_at(*clock);
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
