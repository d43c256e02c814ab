// The examination of one GPU for `perseus doctor`: what Perseus can read and set, and the test of its clock.
//
// Input:   a selector, see training/device/gpu.h.
// Output:  the result of each query, or why it failed.
// Cost:    the time to watch the energy counter; for the test, 40 clock changes.
// Threads: several GPUs at once; the test one GPU at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "training/device/examination.h"
#include "training/device/gpu.h"
#include "training/device/open_gpu.h"

namespace perseus::cli {

/// One GPU, and the results of all queries; a failed query keeps its reason.
struct ExaminedGpu {
  std::string selector;
  std::optional<device::DeviceError> closed;  ///< it cannot even be opened
  device::GpuIdentity identity;
  device::DeviceResult<std::vector<Megahertz>> clocks = device::DeviceError{};
  device::DeviceResult<Megahertz> clock = device::DeviceError{};
  device::DeviceResult<Watts> power = device::DeviceError{}, limit = device::DeviceError{};
  device::DeviceResult<device::ClockEvents> events = device::DeviceError{};
  device::DeviceResult<device::GpuConditions> conditions = device::DeviceError{};
  device::CounterExamination counter;
  device::ControlPath control;
  std::string lock_holder;  ///< the process that locks the clock through Perseus, in words; empty: none
  std::optional<device::SwitchExamination> switching;  ///< none: not requested
};

ExaminedGpu examine_gpu(const std::string& selector, Seconds longest_watch);

/// Without rights of its own, a training process has those of the node's daemon.
void count_on_daemon(ExaminedGpu& gpu, const std::string& socket);
bool can_be_controlled(const ExaminedGpu& gpu);

/// In words; empty: no other process computes on it.
std::string others_of(const device::GpuConditions& conditions);

/// Changes clocks: only on request, one at a time, and on a GPU that another process uses only if `beside_others`.
device::SwitchExamination test_control(const ExaminedGpu& gpu, bool beside_others);

}  // namespace perseus::cli
