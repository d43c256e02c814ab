// The GPU of one rank, opened, with the controller of its clock.
//
// Input:   options; the CUDA devices as the training thread sees them.
// Output:  the GPU, if there is one; the facts about it that the rank registers with; the controller, or why there is
//          none.
// Errors:  Complaints (device, clock_control); the rank trains without energies or clocks then.
// Cost:    a second or two: a driver, a helper process, some clock changes to measure their latency.
// Threads: one; `stop` ends it early, but not a call of the driver.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "training/client/complaints.h"
#include "training/client/messages.h"
#include "training/client/options.h"
#include "training/clock_control/clock_controller.h"
#include "training/device/gpu.h"
#include "training/device/visible_devices.h"

namespace perseus::client {

struct RankDevice {
  RankFacts facts;
  std::string no_control;            ///< why there is no control
  std::unique_ptr<device::Gpu> gpu;  ///< null: none, or it cannot be opened
  std::unique_ptr<clock_control::ClockController> control;
  Megahertz locked_before;  ///< a clock that another process seems to have locked before; 0: none
};

/// True if the option leaves the choice of the GPU to CUDA's view, which only the training thread has.
bool needs_cuda_view(const ClientOptions& options);

RankDevice open_rank_device(const ClientOptions& options, const device::CudaView& cuda, Complaints& complaints,
                            const std::stop_token& stop);

}  // namespace perseus::client
