// The helper's part of a power budget that needs no clock: lowers the GPU's own power limit, and restores it.
//
// Problem: a clock that is wrong, or that another process sets, a program that is not ours, and a profile that is too
//          low draw more than a plan. Only the GPU itself can prevent that.
// Method:  the limit is within the device's range and never above the limit that the GPU had. That limit is in the
//          lease's record before the GPU is changed, so every process that gives a clock back restores the limit too.
//          Every 10 s it reads the limit: where another process has changed it, that one's stays.
// Input:   ClockLimit::power_limit(), which may fall with time; 0 restores. `allowed`: the option of perseus-clockd.
// Output:  the GPU's limit; in the mailbox its state, its watts, and the reason of a refusal.
// Errors:  refused, for the life of the helper: no permission, not supported, MIG (other tenants share the limit),
//          changed by another process. Clocks are set all the same. busy: tries again every second.
// Cost:    up to three device calls for a change, one every 10 s while the limit is lowered; nothing without one.
// Threads: one.
// Source:  docs/decisions/0059-power-limit-as-backstop.md.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "base/units.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/mailbox.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {

class PowerBackstop {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  PowerBackstop(Mailbox& mailbox, device::Gpu& gpu, Lease& lease, bool allowed)
      : mailbox_(mailbox), gpu_(gpu), lease_(lease), allowed_(allowed) {}
  /// Does what is due at that time: after a change of ClockLimit::power_limit(), and from due_ns() on.
  void work(std::int64_t now_ns);
  [[nodiscard]] std::int64_t due_ns() const { return due_ns_; }

 private:
  void restore(std::int64_t now_ns);
  void lower(const device::PowerLimits& limits, std::int64_t now_ns);
  void failed(const device::DeviceError& error, std::int64_t now_ns);
  void refuse(std::string_view why);
  void report(BackstopState state, Watts limit);

  Mailbox& mailbox_;
  device::Gpu& gpu_;
  Lease& lease_;
  bool allowed_;
  bool examined_ = false;  ///< the GPU is not divided by MIG
  bool refused_ = false;
  Watts wanted_{-1};  ///< at the last work(); below 0: there was none, and a limit of an earlier helper may be set
  std::int64_t due_ns_ = kNever;
};

}  // namespace perseus::clock_control
