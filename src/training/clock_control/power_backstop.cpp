#include "training/clock_control/power_backstop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace perseus::clock_control {
namespace {

constexpr std::int64_t kReadEvery = 10'000'000'000;  // ns
constexpr std::int64_t kBusyPause = 1'000'000'000;

}  // namespace

void PowerBackstop::work(std::int64_t now_ns) {
  const Watts wanted = mailbox_.limit.power_limit(now_ns);
  const bool changed = std::exchange(wanted_, wanted) != wanted;
  if (!changed && now_ns < due_ns_) return;
  due_ns_ = kNever;
  if (refused_ && (wanted != Watts(0) || !lease_.power_limit().any())) return;
  if (wanted == Watts(0)) return restore(now_ns);
  if (!allowed_) return refuse("perseus-clockd sets no power limit without its option --power-limit");
  if (!examined_) {
    const auto conditions = gpu_.conditions();
    if (!conditions) return failed(conditions.error(), now_ns);
    if (conditions->mig) return refuse("the GPU is divided (MIG), and its power limit holds for all parts");
    examined_ = true;
  }
  const auto limits = gpu_.power_limits();
  if (!limits) return failed(limits.error(), now_ns);
  if (!(limits->set > Watts(0) && limits->least <= limits->most)) {
    return refuse("the driver reports no power limit of the GPU");
  }
  if (lease_.power_limit().any() && !lease_.power_limit().is_own(limits->set)) {
    (void)lease_.record_power_limit({});
    return refuse(
        fmt::format("another process has set the GPU's power limit to {:.0f} W, which stays", limits->set.value()));
  }
  lower(*limits, now_ns);
}

void PowerBackstop::lower(const device::PowerLimits& limits, std::int64_t now_ns) {
  const LoweredPowerLimit held = lease_.power_limit();
  const Watts was = held.any() ? held.was : limits.set;
  const Watts limit = std::max(wanted_, limits.least);
  if (limit >= was) {
    restore(now_ns);
    if (due_ns_ == kNever) report(BackstopState::needless, was);
    return;
  }
  if (limit != limits.set) {
    if (auto recorded = lease_.record_power_limit({was, limit, limits.set}); !recorded) {
      return refuse(recorded.error().message);
    }
    mailbox_.locked.store(1, std::memory_order_release);
    if (auto done = gpu_.set_power_limit(limit); !done) {
      // A call that certainly did not set it changes nothing; one that timed out may have set it.
      if (done.error().fault != device::DeviceFault::busy) (void)lease_.record_power_limit(held);
      return failed(done.error(), now_ns);
    }
  }
  (void)lease_.record_power_limit({was, limit, limit});
  report(BackstopState::set, limit);
  due_ns_ = now_ns + kReadEvery;
}

void PowerBackstop::restore(std::int64_t now_ns) {
  if (lease_.power_limit().any()) {
    if (auto restored = restore_power_limit(gpu_, lease_.power_limit()); !restored) {
      return failed(restored.error(), now_ns);
    }
    (void)lease_.record_power_limit({});
  }
  report(BackstopState::none, Watts(0));
}

void PowerBackstop::failed(const device::DeviceError& error, std::int64_t now_ns) {
  if (error.fault != device::DeviceFault::busy) return refuse(error.message);
  due_ns_ = now_ns + kBusyPause;
}

void PowerBackstop::refuse(std::string_view why) {
  refused_ = true;
  mailbox_.why_no_backstop.write(why);
  report(BackstopState::refused, lease_.power_limit().set);
}

void PowerBackstop::report(BackstopState state, Watts limit) {
  mailbox_.backstop_mw.store(static_cast<std::int32_t>(std::lround(limit.value() * 1000)), std::memory_order_relaxed);
  mailbox_.backstop.store(state, std::memory_order_release);
}

}  // namespace perseus::clock_control
