// A GPU with scripted answers, and a hand-turned clock.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "training/device/gpu.h"

namespace perseus::clock_control {

class FakeGpu final : public device::Gpu {
 public:
  static constexpr std::size_t kAlways = 64;  ///< more calls than any repetition makes
  explicit FakeGpu(std::string uuid = "GPU-fake") { identity_.uuid = std::move(uuid); }
  [[nodiscard]] const device::GpuIdentity& identity() const override { return identity_; }
  device::DeviceResult<std::vector<Megahertz>> supported_clocks() override { return clocks; }
  device::DeviceResult<Megahertz> clock() override {
    if (unreadable) return device::DeviceError{*unreadable, "injected fault"};
    return running_at;
  }
  device::DeviceResult<Joules> energy() override { return Joules(0); }
  device::DeviceResult<Watts> power() override { return Watts(0); }
  device::DeviceResult<Watts> power_limit() override { return Watts(0); }
  device::DeviceResult<device::ClockEvents> clock_events() override { return events; }
  device::DeviceResult<device::GpuConditions> conditions() override { return device::GpuConditions{}; }
  device::DeviceStatus lock_clock(Megahertz clock) override { return call(clock.value()); }
  device::DeviceStatus unlock_clock() override { return call(0); }
  void is_of_amd() { identity_.amd = true; }

  std::vector<Megahertz> clocks{Megahertz(1400), Megahertz(700), Megahertz(350)};
  Megahertz running_at{1400};
  std::function<Megahertz(int)> follows = {};  ///< the clock at which it runs after a setting call (0: unlocked)
  device::ClockEvents events;
  std::optional<device::DeviceFault> unreadable;
  std::int64_t now_ns = 5'000'000'000;
  std::int64_t call_takes_ns = 3'000'000;
  std::deque<device::DeviceFault> faults;  ///< results of the next setting calls
  std::vector<int> calls;                  ///< locked clocks, 0 for unlocking; includes failed calls
  int locked_mhz = 0;

 private:
  device::DeviceStatus call(int mhz) {
    calls.push_back(mhz);
    now_ns += call_takes_ns;
    if (!faults.empty()) {
      const device::DeviceFault fault = faults.front();
      faults.pop_front();
      return device::DeviceError{fault, "injected fault"};
    }
    locked_mhz = mhz;
    if (follows) running_at = follows(mhz);
    return Ok{};
  }
  device::GpuIdentity identity_;
};

}  // namespace perseus::clock_control
