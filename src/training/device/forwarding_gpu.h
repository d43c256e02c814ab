// A Gpu that forwards every call to another one: the base of wrappers that change a few of them.
//
// Cost:    one virtual call each.
// Threads: as training/device/gpu.h.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "training/device/gpu.h"

namespace perseus::device {

class ForwardingGpu : public Gpu {
 public:
  explicit ForwardingGpu(std::unique_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  [[nodiscard]] const GpuIdentity& identity() const override { return gpu_->identity(); }
  DeviceResult<std::vector<Megahertz>> supported_clocks() override { return gpu_->supported_clocks(); }
  DeviceResult<Megahertz> clock() override { return gpu_->clock(); }
  DeviceResult<Joules> energy() override { return gpu_->energy(); }
  DeviceResult<Watts> power() override { return gpu_->power(); }
  DeviceResult<Watts> power_limit() override { return gpu_->power_limit(); }
  DeviceResult<ClockEvents> clock_events() override { return gpu_->clock_events(); }
  DeviceResult<GpuConditions> conditions() override { return gpu_->conditions(); }
  DeviceStatus lock_clock(Megahertz clock) override { return gpu_->lock_clock(clock); }
  DeviceStatus unlock_clock() override { return gpu_->unlock_clock(); }
  DeviceStatus limit_clock(Megahertz lowest, Megahertz highest) override { return gpu_->limit_clock(lowest, highest); }

 protected:
  [[nodiscard]] Gpu& inner() const { return *gpu_; }

 private:
  std::unique_ptr<Gpu> gpu_;
};

}  // namespace perseus::device
