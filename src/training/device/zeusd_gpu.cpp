// "zeusd:WHICH": an NVIDIA GPU through NVML with the privileged calls through zeusd, or an AMD GPU through zeusd;
// "nvml:WHICH": the former, from the first call on for which NVML gives no permission.
#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "training/device/amdgpu_files.h"
#include "training/device/backends.h"
#include "training/device/gpu.h"
#include "training/device/nvml_gpu.h"
#include "training/device/zeusd.h"

namespace perseus::device {
namespace {

constexpr const char* kPartition = "a partition of a card has neither a clock nor an energy counter of its own";

class NvidiaGpu final : public ForwardingGpu {
 public:
  explicit NvidiaGpu(std::unique_ptr<NvmlGpu> nvml)
      : ForwardingGpu(std::move(nvml)), identity_(ForwardingGpu::identity()) {}
  void use(Zeusd zeusd) {
    identity_.driver += zeusd.older() ? ", zeusd before 0.3" : ", zeusd";
    identity_.by_daemon = true;
    zeusd_ = std::move(zeusd);
  }
  DeviceResult<Zeusd> find_zeusd() {
    return Zeusd::open(identity_.pci_bus_id, static_cast<const NvmlGpu&>(inner()).index());
  }
  [[nodiscard]] const GpuIdentity& identity() const override { return identity_; }
  DeviceStatus lock_clock(Megahertz clock) override {
    return set([&](auto& gpu) { return gpu.lock_clock(clock); });
  }
  DeviceStatus unlock_clock() override {
    return set([](auto& gpu) { return gpu.unlock_clock(); });
  }
  DeviceStatus limit_clock(Megahertz lowest, Megahertz highest) override {
    return set([&](auto& gpu) { return gpu.limit_clock(lowest, highest); });
  }

 private:
  template <class Call>
  DeviceStatus set(const Call& call) {
    if (zeusd_) return call(*zeusd_);
    DeviceStatus done = call(inner());
    if (done || done.error().fault != DeviceFault::no_permission) return done;
    auto zeusd = find_zeusd();
    if (!zeusd) {
      if (zeusd.error().fault == DeviceFault::no_driver) return done;  // there is none
      return DeviceError{DeviceFault::no_permission,
                         fmt::format("{}; {}", done.error().message, zeusd.error().message)};
    }
    use(std::move(*zeusd));
    return call(*zeusd_);
  }

  std::optional<Zeusd> zeusd_;
  GpuIdentity identity_;
};

/// Energy, power and limits by zeusd, clocks by the files of the kernel.
class AmdGpu final : public Gpu {
 public:
  explicit AmdGpu(Zeusd zeusd) : zeusd_(std::move(zeusd)), pci_(zeusd_.gpu().pci) {
    identity_.name = zeusd_.gpu().name;
    identity_.pci_bus_id = text_of(pci_);
    identity_.driver = "zeusd";
    identity_.node = amd_device_node(pci_);
    identity_.amd = true;
    identity_.by_daemon = zeusd_.controls();
  }

  [[nodiscard]] const GpuIdentity& identity() const override { return identity_; }
  DeviceResult<std::vector<Megahertz>> supported_clocks() override {
    auto clocks = amd_clocks(pci_);
    if (!clocks) return clocks.error();
    lowest_ = clocks->lowest;
    return std::move(clocks->limits);
  }
  DeviceResult<Megahertz> clock() override { return amd_clock_now(pci_); }
  DeviceResult<Joules> energy() override {
    if (zeusd_.partition()) return unknown(kPartition);
    if (zeusd_.counted_with() != zeusd_.gpu().id) {
      return unknown(fmt::format("the energy of zeusd's GPU {} ({}) is counted with GPU {}", zeusd_.gpu().id,
                                 identity_.pci_bus_id, zeusd_.counted_with()));
    }
    const auto millijoules = zeusd_.read("get_cumulative_energy", {"", "energy_mj"});
    if (!millijoules) return millijoules.error();
    return Joules(*millijoules / 1000);
  }
  DeviceResult<Watts> power() override { return watts("get_power", {"power_mw", ""}); }
  DeviceResult<Watts> power_limit() override { return watts("get_power_limit", {"", "power_limit_mw"}); }
  DeviceResult<ClockEvents> clock_events() override { return ClockEvents{}; }  // zeusd shows none
  DeviceResult<GpuConditions> conditions() override {
    GpuConditions conditions;
    conditions.mig = zeusd_.partition();
    return conditions;
  }

  /// The driver refuses equal limits, and with the lowest one unchanged the order of two limits does not matter.
  DeviceStatus lock_clock(Megahertz clock) override {
    if (zeusd_.partition()) return unknown(kPartition);
    if (lowest_ == Megahertz(0)) {
      if (const auto clocks = supported_clocks(); !clocks) return clocks.error();
    }
    if (clock <= lowest_) return DeviceError{DeviceFault::bad_clock, fmt::format("{} MHz is too low", clock.value())};
    return zeusd_.lock_clocks(lowest_, clock);
  }
  DeviceStatus unlock_clock() override { return zeusd_.unlock_clock(); }
  DeviceStatus limit_clock(Megahertz, Megahertz highest) override { return lock_clock(highest); }

 private:
  static DeviceError unknown(std::string why) { return {DeviceFault::not_supported, std::move(why)}; }

  /// A virtual function reports the greatest number where it means unknown, of which zeusd keeps the low bits.
  DeviceResult<Watts> watts(std::string_view name, std::initializer_list<std::string_view> keys) {
    const auto milliwatts = zeusd_.read(name, keys);
    if (!milliwatts) return milliwatts.error();
    constexpr double most_mw = 1e7;
    if (*milliwatts > 0 && *milliwatts <= most_mw) return Watts(*milliwatts / 1000);
    return unknown(fmt::format("{} of {}: not known (zeusd: {} mW)", name, identity_.pci_bus_id, *milliwatts));
  }

  Zeusd zeusd_;
  PciBusId pci_;
  GpuIdentity identity_;
  Megahertz lowest_;
};

}  // namespace

DeviceResult<std::unique_ptr<Gpu>> open_nvml(const std::string& which) {
  auto nvml = NvmlGpu::open(which);
  if (!nvml) return nvml.error();
  return std::unique_ptr<Gpu>(std::make_unique<NvidiaGpu>(std::move(*nvml)));
}

DeviceResult<std::unique_ptr<Gpu>> open_zeusd(const std::string& which) {
  auto nvml = NvmlGpu::open(which);
  if (!nvml) {
    auto amd = Zeusd::open_amd(which);
    if (amd) return std::unique_ptr<Gpu>(std::make_unique<AmdGpu>(std::move(*amd)));
    if (nvml.error().fault != DeviceFault::no_driver) return nvml.error();
    return DeviceError{amd.error().fault, fmt::format("{}; {}", amd.error().message, nvml.error().message)};
  }
  auto gpu = std::make_unique<NvidiaGpu>(std::move(*nvml));
  auto zeusd = gpu->find_zeusd();
  if (!zeusd) return zeusd.error();
  gpu->use(std::move(*zeusd));
  return std::unique_ptr<Gpu>(std::move(gpu));
}

std::vector<std::string> find_amd() {
  std::vector<std::string> selectors;
  if (amd_gpus_in_hip_order().empty()) return selectors;
  const auto offer = ask_zeusd();
  if (!offer) return selectors;
  for (const auto& gpu : offer->gpus) {
    if (is_amd_gpu(gpu.pci)) selectors.push_back("zeusd:" + text_of(gpu.pci));
  }
  return selectors;
}

}  // namespace perseus::device
