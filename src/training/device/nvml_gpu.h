// One GPU through NVML. zeusd_gpu.cpp adds zeusd to it.
//
// Input:   an index, a UUID (or the beginning of one that only one GPU has), a PCI bus id. A MIG slice stands for its
//          whole GPU, and conditions() reports that; its UUID may begin with GPU-, as CUDA and PyTorch give it.
// Output:  as training/device/gpu.h; so are errors and threads.
// Source:  docs/device.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "training/device/gpu.h"
#include "training/device/nvml_library.h"

namespace perseus::device {

class NvmlGpu final : public Gpu {
 public:
  static DeviceResult<std::unique_ptr<NvmlGpu>> open(const std::string& which);

  [[nodiscard]] const GpuIdentity& identity() const override { return identity_; }
  DeviceResult<std::vector<Megahertz>> supported_clocks() override;
  DeviceResult<Megahertz> clock() override;
  DeviceResult<Joules> energy() override;
  DeviceResult<Watts> power() override;
  DeviceResult<Watts> power_limit() override;
  DeviceResult<ClockEvents> clock_events() override;
  DeviceResult<GpuConditions> conditions() override;
  DeviceStatus lock_clock(Megahertz clock) override;
  DeviceStatus unlock_clock() override;
  DeviceStatus limit_clock(Megahertz lowest, Megahertz highest) override;

  /// Its index in NVML; -1: the driver does not report it.
  [[nodiscard]] int index() const;

 private:
  NvmlGpu(std::shared_ptr<const NvmlLibrary> nvml, nvml::Device device);
  [[nodiscard]] DeviceError error(const char* function, int code, bool sets_clock = false) const;
  [[nodiscard]] int name_by(const std::string& which);
  [[nodiscard]] DeviceResult<std::vector<Megahertz>> clocks_beside(unsigned memory_mhz) const;
  bool list_has_changed(Megahertz clock);
  /// Where the driver lists no clocks: nothing, or its range in steps.
  void find_clocks_without_list();
  /// The value of a field as a whole number.
  int field(unsigned id, unsigned scope, unsigned long long& value) const;

  std::shared_ptr<const NvmlLibrary> nvml_;
  nvml::Device device_;
  GpuIdentity identity_;
  std::vector<Megahertz> clocks_;        ///< empty: not read yet
  std::string clocks_source_;            ///< as GpuConditions::clocks_source
  std::optional<unsigned> power_scope_;  ///< of POWER_INSTANT; none: not determined yet
  bool has_power_field_ = true;
};

}  // namespace perseus::device
