// In place of src/training/device: a GPU whose clock calls do nothing, so that no driver's clock calls are in this
// program.
#include <memory>
#include <string>
#include <vector>

#include "training/device/gpu.h"

namespace perseus {
namespace {

/// Takes every clock and does nothing.
class NoOpGpu final : public device::Gpu {
 public:
  [[nodiscard]] const device::GpuIdentity& identity() const override { return identity_; }
  device::DeviceResult<std::vector<Megahertz>> supported_clocks() override {
    return std::vector{Megahertz(2), Megahertz(1)};
  }
  device::DeviceResult<Megahertz> clock() override { return clock_; }
  device::DeviceResult<Joules> energy() override { return nothing(); }
  device::DeviceResult<Watts> power() override { return nothing(); }
  device::DeviceResult<Watts> power_limit() override { return nothing(); }
  device::DeviceResult<device::ClockEvents> clock_events() override { return device::ClockEvents{}; }
  device::DeviceResult<device::GpuConditions> conditions() override { return device::GpuConditions{}; }
  device::DeviceStatus lock_clock(Megahertz clock) override {
    clock_ = clock;
    return Ok{};
  }
  device::DeviceStatus unlock_clock() override { return Ok{}; }
  device::DeviceStatus limit_clock(Megahertz, Megahertz) override { return Ok{}; }

 private:
  static device::DeviceError nothing() { return {device::DeviceFault::not_supported, "the no-op GPU has no counter"}; }
  device::GpuIdentity identity_{"no-op GPU", "GPU-no-op", "", "", "", true};
  Megahertz clock_;
};

}  // namespace

device::DeviceResult<std::unique_ptr<device::Gpu>> open_gpu(const std::string& selector) {
  if (selector == "no-op") return std::unique_ptr<device::Gpu>(std::make_unique<NoOpGpu>());
  return device::DeviceError{device::DeviceFault::no_driver,
                             "this program opens no GPU for clock control: " + selector};
}

device::DeviceStatus device::Gpu::limit_clock(Megahertz, Megahertz) {
  return device::DeviceError{device::DeviceFault::not_supported, "this program limits no clock"};
}

std::string stable_selector(const device::GpuIdentity&, const std::string& selector) { return selector; }

}  // namespace perseus
