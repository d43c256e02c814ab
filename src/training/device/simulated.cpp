// "simulated:PATH": the simulated GPU's driver as a Gpu. The names of functions are NVML's, so that an injected fault
// has the same effect here as in the simulated NVML library.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "simulation/simulated_gpu/find.h"
#include "simulation/simulated_gpu/simulated_driver.h"
#include "training/device/backends.h"
#include "training/device/nvml_codes.h"

namespace perseus::device {
namespace {

class SimulatedBackend final : public Gpu {
 public:
  SimulatedBackend(std::unique_ptr<simulated_gpu::SimulatedDriver> driver, const std::string& path)
      : driver_(std::move(driver)) {
    identity_ = {
        driver_->name(), driver_->uuid(), driver_->pci_bus_id(), driver_->architecture(), "simulated", true, path};
    what_ = "simulated:" + path;
  }

  [[nodiscard]] const GpuIdentity& identity() const override { return identity_; }

  DeviceResult<std::vector<Megahertz>> supported_clocks() override {
    return ask("nvmlDeviceGetSupportedGraphicsClocks", [&] { return driver_->clocks(); });
  }
  DeviceResult<Megahertz> clock() override {
    return ask("nvmlDeviceGetClockInfo", [&] { return driver_->clock(); });
  }
  DeviceResult<Joules> energy() override {
    return ask("nvmlDeviceGetTotalEnergyConsumption", [&] { return driver_->counter(); });
  }
  DeviceResult<Watts> power() override {
    return ask("nvmlDeviceGetPowerUsage", [&] { return driver_->average_power(); });
  }
  DeviceResult<Watts> power_limit() override {
    return ask("nvmlDeviceGetEnforcedPowerLimit", [&] { return driver_->power_limit(); });
  }
  DeviceResult<ClockEvents> clock_events() override {
    return ask("nvmlDeviceGetCurrentClocksEventReasons", [&] {
      ClockEvents events;
      events.idle = driver_->idle();
      events.power_cap = driver_->power_capped();
      return events;
    });
  }
  DeviceResult<GpuConditions> conditions() override {
    return ask("nvmlDeviceGetMigMode", [&] {
      GpuConditions conditions;
      conditions.mig = driver_->mig();
      conditions.persistence = driver_->persistence();
      conditions.power_smoothing = driver_->power_smoothing();
      conditions.other_processes = static_cast<int>(std::ranges::count_if(
          driver_->processes(), [](int process) { return process != getpid() && process != getppid(); }));
      conditions.default_power_limit = driver_->default_power_limit();
      return conditions;
    });
  }

  DeviceStatus lock_clock(Megahertz clock) override {
    return tell("nvmlDeviceSetGpuLockedClocks", [&] { return driver_->lock_clocks(clock, clock); });
  }
  DeviceStatus unlock_clock() override {
    return tell("nvmlDeviceResetGpuLockedClocks", [&] { return driver_->unlock_clocks(); });
  }
  DeviceStatus limit_clock(Megahertz lowest, Megahertz highest) override {
    return tell("nvmlDeviceSetGpuLockedClocks", [&] { return driver_->lock_clocks(lowest, highest); });
  }

 private:
  template <class F>
  auto ask(const char* function, F f) -> DeviceResult<decltype(f())> {
    const int code = driver_->fault(function);
    if (code != nvml_code::kSuccess) return nvml_error(function, what_, code);
    return f();
  }
  template <class F>
  DeviceStatus tell(const char* function, F f) {
    int code = driver_->fault(function);
    if (code == nvml_code::kSuccess) code = f();
    if (code != nvml_code::kSuccess) return nvml_error(function, what_, code, true);
    return Ok{};
  }

  std::unique_ptr<simulated_gpu::SimulatedDriver> driver_;
  GpuIdentity identity_;
  std::string what_;
};

}  // namespace

DeviceResult<std::unique_ptr<Gpu>> open_simulated(const std::string& path,
                                                  simulated_gpu::SimulatedGpu::TimeSource now) {
  auto driver = simulated_gpu::SimulatedDriver::attach(path, std::move(now));
  if (!driver) return DeviceError{DeviceFault::lost, driver.error().message};
  return std::unique_ptr<Gpu>(std::make_unique<SimulatedBackend>(std::move(*driver), path));
}

std::vector<std::string> find_simulated() {
  std::vector<std::string> selectors;
  for (const std::string& path : simulated_gpu::simulated_gpu_files()) selectors.push_back("simulated:" + path);
  return selectors;
}

}  // namespace perseus::device
