// One GPU as this system needs it: its identity, its clocks, its energy counter, and setting its clock.
//
// Problem: NVML, zeusd and the simulated GPU differ in names, units and failures; all code above this file
//          must not.
// Input:   only the calls.
// Output:  units of base/units.h; clocks are those of the SMs (AMD: GFX), the supported ones highest first and
//          unique.
// Errors:  DeviceError, grouped by what the caller can do about it; no call throws or exits.
// Cost:    a driver call each (microseconds; setting a clock: milliseconds on real GPUs); the list of clocks is read
//          once.
// Threads: one object, one thread at a time; several objects of one GPU are fine, also in several processes.
// Source:  NVML's documentation; paper section 5 (the controller and profiler run on it).
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace perseus::device {

/// What a caller can do about a failed device call.
enum class DeviceFault {
  not_supported,  ///< this GPU or driver lacks the feature: do without it
  no_permission,  ///< another control path may have it (zeusd, the helper as root)
  bad_clock,      ///< not a supported clock: use a supported one
  busy,           ///< may succeed later: retry with back-off
  lost,           ///< the GPU has fallen off the bus or must be reset: stop using it and report it
  no_driver,      ///< no library, driver or daemon: no control on this machine
};

struct DeviceError {
  DeviceFault fault = DeviceFault::not_supported;
  std::string message;  ///< names the call, the GPU and the driver's message
};

template <class T>
using DeviceResult = Result<T, DeviceError>;
using DeviceStatus = DeviceResult<Ok>;

struct GpuIdentity {
  std::string name;          ///< "NVIDIA A100-SXM4-80GB"
  std::string uuid;          ///< "GPU-..."
  std::string pci_bus_id;    ///< "00000000:01:00.0"
  std::string architecture;  ///< "Ampere"; empty: not known
  std::string driver;        ///< version of driver and library, or of the daemon
  bool simulated = false;    ///< not a real GPU; every output that shows it must mark it
  std::string node = {};     ///< the file whose permissions guard this GPU ("/dev/nvidia0"); empty: not known
  bool amd = false;          ///< its clock limits are soft: see runs_at()
  bool by_daemon = false;    ///< another process sets its clock (zeusd): how long a call takes is not known
};

/// The GPU's name in leases and daemon requests: its UUID, else its PCI bus id. An index means another GPU elsewhere.
inline const std::string& stable_id(const GpuIdentity& gpu) { return gpu.uuid.empty() ? gpu.pci_bus_id : gpu.uuid; }

/// Whether a GPU whose clock was set to `set` runs at it while it shows `shown`. AMD's clock swings below its limit.
inline bool runs_at(const GpuIdentity& gpu, Megahertz set, Megahertz shown) {
  constexpr double step_mhz = 8, swing = 0.2;
  return std::abs(shown.value() - set.value()) <= (gpu.amd ? swing * set.value() : step_mhz);
}

/// Why the GPU runs at another clock than the requested one; see NVML's clock event reasons.
struct ClockEvents {
  bool idle = false;
  bool power_cap = false;    ///< software power cap
  bool thermal = false;      ///< software or hardware thermal slowdown
  bool power_brake = false;  ///< hardware slowdown or power brake
  bool sync_boost = false;
  /// A sample taken now did not run at the requested clock.
  [[nodiscard]] bool throttled() const { return power_cap || thermal || power_brake; }
};

/// Conditions that hinder control of this GPU, as far as the driver reports them.
struct GpuConditions {
  bool mig = false;                ///< sliced: clocks and energy are those of the whole card
  bool persistence = true;         ///< without it a clock lock can be lost when no process has the device open
  bool power_smoothing = false;    ///< a power floor is held: lower clocks in bubbles save nothing
  bool whole_module = false;       ///< a superchip: power and energy include the CPU's
  int other_processes = 0;         ///< that compute on it, besides this one, its parent and the MPS server
  int unknown_processes = 0;       ///< of these, without a number in this PID namespace: this one may be among them
  Watts default_power_limit;       ///< 0: not known
  std::string clocks_source = {};  ///< where the driver lists no clocks: the call that gave their range; else empty
};

class Gpu {
 public:
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  virtual ~Gpu() = default;  ///< does not change clocks

  [[nodiscard]] virtual const GpuIdentity& identity() const = 0;
  virtual DeviceResult<std::vector<Megahertz>> supported_clocks() = 0;  ///< at the highest memory clock
  virtual DeviceResult<Megahertz> clock() = 0;                          ///< actual clock now
  virtual DeviceResult<Joules> energy() = 0;      ///< counter; moves in steps of its refresh period
  virtual DeviceResult<Watts> power() = 0;        ///< now, or as close to it as the sensor provides
  virtual DeviceResult<Watts> power_limit() = 0;  ///< enforced, by any source
  virtual DeviceResult<ClockEvents> clock_events() = 0;
  virtual DeviceResult<GpuConditions> conditions() = 0;

  /// Pins the clock. The caller must call unlock_clock(), also after SIGKILL: only the helper process calls it.
  virtual DeviceStatus lock_clock(Megahertz clock) = 0;
  virtual DeviceStatus unlock_clock() = 0;  ///< back to the driver's own choice
  /// The driver chooses within [lowest, highest]. Default: not_supported.
  virtual DeviceStatus limit_clock(Megahertz lowest, Megahertz highest);
};

// A Gpu that forwards every call to another one: the base of wrappers that change a few of them.

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

/// The highest of these clocks, which are highest first, that is not above `limit`; the lowest if all are. `limit`
/// itself if no clock is known.
template <class Clock>
Clock highest_within(const std::vector<Clock>& clocks, Clock limit) {
  if (clocks.empty()) return limit;
  const auto found = std::ranges::find_if(clocks, [&limit](const Clock& clock) { return clock <= limit; });
  return found == clocks.end() ? clocks.back() : *found;
}

}  // namespace perseus::device
