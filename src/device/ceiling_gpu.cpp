#include "device/ceiling_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "device/forwarding_gpu.h"

namespace perseus {
namespace {

class CeilingGpu final : public ForwardingGpu {
 public:
  CeilingGpu(std::unique_ptr<Gpu> gpu, Megahertz ceiling) : ForwardingGpu(std::move(gpu)), ceiling_(ceiling) {}

  DeviceResult<std::vector<Megahertz>> supported_clocks() override {
    auto clocks = ForwardingGpu::supported_clocks();
    if (!clocks) return clocks;
    const Megahertz lowest = clocks->back();
    std::erase_if(*clocks, [this](Megahertz clock) { return clock > ceiling_; });
    if (clocks->empty()) {
      return DeviceError{DeviceFault::bad_clock,
                         fmt::format("the clock ceiling of {} is too low: {} MHz; allowed: {} MHz and above",
                                     stable_id(identity()), ceiling_.value(), lowest.value())};
    }
    return clocks;
  }
  DeviceStatus lock_clock(Megahertz clock) override {
    const auto clocks = supported_clocks();
    if (!clocks) return clocks.error();
    return ForwardingGpu::lock_clock(std::min(clock, clocks->front()));
  }
  DeviceStatus unlock_clock() override {
    const auto clocks = supported_clocks();
    if (!clocks) return clocks.error();
    return limit_clock(clocks->back(), ceiling_);
  }

 private:
  Megahertz ceiling_;
};

}  // namespace

std::unique_ptr<Gpu> with_ceiling(std::unique_ptr<Gpu> gpu, Megahertz ceiling) {
  if (ceiling.value() <= 0) return gpu;
  return std::make_unique<CeilingGpu>(std::move(gpu), ceiling);
}

Megahertz ceiling_of_environment() {
  const char* given = ::secure_getenv("PERSEUS_CEILING_MHZ");
  constexpr int most = 65535;
  return Megahertz(given == nullptr ? 0 : std::clamp(std::atoi(given), 0, most));
}

}  // namespace perseus
