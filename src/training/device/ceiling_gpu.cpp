#include "training/device/ceiling_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

namespace perseus::device {
namespace {

class CeilingGpu final : public ForwardingGpu {
 public:
  CeilingGpu(std::unique_ptr<Gpu> gpu, Megahertz ceiling, bool stays)
      : ForwardingGpu(std::move(gpu)), ceiling_(ceiling), stays_(stays) {}

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
    if (!stays_) return ForwardingGpu::unlock_clock();
    const auto clocks = supported_clocks();
    if (!clocks) return clocks.error();
    return limit_clock(clocks->back(), ceiling_);
  }

 private:
  Megahertz ceiling_;
  bool stays_;
};

}  // namespace

std::unique_ptr<Gpu> with_ceiling(std::unique_ptr<Gpu> gpu, Megahertz ceiling, bool stays) {
  if (ceiling.value() <= 0) return gpu;
  return std::make_unique<CeilingGpu>(std::move(gpu), ceiling, stays);
}

DeviceResult<Megahertz> ceiling_of_environment() {
  const char* given = ::secure_getenv("PERSEUS_CEILING_MHZ");
  if (given == nullptr || *given == '\0') return Megahertz(0);
  const std::string_view text(given);
  int mhz = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mhz);
  constexpr int most = 65535;
  if (error != std::errc() || end != text.data() + text.size() || mhz < 1 || mhz > most) {
    return DeviceError{DeviceFault::no_permission,
                       fmt::format("PERSEUS_CEILING_MHZ is '{}'; allowed: 1 to {}, in MHz", text, most)};
  }
  return Megahertz(mhz);
}

}  // namespace perseus::device
