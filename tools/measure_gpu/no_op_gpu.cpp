// In place of the drivers of src/training/device: a GPU whose clock calls do nothing, so that no driver's clock calls
// are in this program.
#include <memory>
#include <string>
#include <vector>

#include "training/device/gpu.h"
#include "training/device/open_gpu.h"

namespace perseus::device {
namespace {

/// Takes every clock and does nothing.
class NoOpGpu final : public Gpu {
 public:
  [[nodiscard]] const GpuIdentity& identity() const override { return identity_; }
  DeviceResult<std::vector<Megahertz>> supported_clocks() override { return std::vector{Megahertz(2), Megahertz(1)}; }
  DeviceResult<Megahertz> clock() override { return clock_; }
  DeviceResult<Joules> energy() override { return nothing(); }
  DeviceResult<Watts> power() override { return nothing(); }
  DeviceResult<Watts> power_limit() override { return nothing(); }
  DeviceResult<ClockEvents> clock_events() override { return ClockEvents{}; }
  DeviceResult<GpuConditions> conditions() override { return GpuConditions{}; }
  DeviceStatus lock_clock(Megahertz clock) override {
    clock_ = clock;
    return Ok{};
  }
  DeviceStatus unlock_clock() override { return Ok{}; }
  DeviceStatus limit_clock(Megahertz, Megahertz) override { return Ok{}; }

 private:
  static DeviceError nothing() { return {DeviceFault::not_supported, "the no-op GPU has no counter"}; }
  GpuIdentity identity_{"no-op GPU", "GPU-no-op", "", "", "", true};
  Megahertz clock_;
};

}  // namespace

DeviceResult<std::unique_ptr<Gpu>> open_gpu(const std::string& selector) {
  if (selector == "no-op") return std::unique_ptr<Gpu>(std::make_unique<NoOpGpu>());
  return DeviceError{DeviceFault::no_driver, "this program opens no GPU for clock control: " + selector};
}

std::string stable_selector(const GpuIdentity&, const std::string& selector) { return selector; }

}  // namespace perseus::device
