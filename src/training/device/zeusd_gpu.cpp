// "zeusd:WHICH": a GPU through NVML, with the privileged calls through zeusd.
#include <utility>

#include "training/device/backends.h"
#include "training/device/nvml_gpu.h"
#include "training/device/zeusd.h"

namespace perseus::device {
namespace {

class ZeusdGpu final : public Gpu {
 public:
  ZeusdGpu(std::unique_ptr<NvmlGpu> nvml, Zeusd zeusd)
      : nvml_(std::move(nvml)), zeusd_(std::move(zeusd)), identity_(nvml_->identity()) {
    identity_.driver += zeusd_.older() ? ", zeusd before 0.3" : ", zeusd";
  }

  [[nodiscard]] const GpuIdentity& identity() const override { return identity_; }
  DeviceResult<std::vector<Megahertz>> supported_clocks() override { return nvml_->supported_clocks(); }
  DeviceResult<Megahertz> clock() override { return nvml_->clock(); }
  DeviceResult<Joules> energy() override { return nvml_->energy(); }
  DeviceResult<Watts> power() override { return nvml_->power(); }
  DeviceResult<Watts> power_limit() override { return nvml_->power_limit(); }
  DeviceResult<ClockEvents> clock_events() override { return nvml_->clock_events(); }
  DeviceResult<GpuConditions> conditions() override { return nvml_->conditions(); }
  DeviceStatus lock_clock(Megahertz clock) override { return zeusd_.lock_clock(clock); }
  DeviceStatus unlock_clock() override { return zeusd_.unlock_clock(); }
  DeviceStatus limit_clock(Megahertz lowest, Megahertz highest) override { return zeusd_.limit_clock(lowest, highest); }
  DeviceResult<PowerLimits> power_limits() override { return nvml_->power_limits(); }
  DeviceStatus set_power_limit(Watts limit) override { return zeusd_.set_power_limit(limit); }

 private:
  std::unique_ptr<NvmlGpu> nvml_;
  Zeusd zeusd_;
  GpuIdentity identity_;
};

}  // namespace

DeviceResult<std::unique_ptr<Gpu>> open_zeusd(const std::string& which) {
  auto nvml = NvmlGpu::open(which);
  if (!nvml) return nvml.error();
  auto zeusd = Zeusd::open((*nvml)->identity().pci_bus_id, (*nvml)->index());
  if (!zeusd) return zeusd.error();
  return std::unique_ptr<Gpu>(std::make_unique<ZeusdGpu>(std::move(*nvml), std::move(*zeusd)));
}

}  // namespace perseus::device
