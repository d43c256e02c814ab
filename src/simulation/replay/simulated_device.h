// The simulated GPU of a worker, as the device of a replay.
//
// A computation that should have started a little ago begins with that start time: its progress and energy are those
// it would have by now at the clock that the device has. Compensation is limited to half of the computation's
// duration; beyond that the process was too late for the simulation to be faithful, and the computation starts late.
//
// Problem: see simulation/replay/iteration.h.
// Input:   an attached GPU, the map from types of the DAG to its computations, its blocking power.
// Output:  stamps in CLOCK_MONOTONIC seconds.
// Cost:    some microseconds a computation.
#pragma once

#include <map>
#include <memory>

#include "simulation/replay/iteration.h"
#include "simulation/simulated_gpu/simulated_gpu.h"

namespace perseus::replay {

/// CLOCK_MONOTONIC.
double monotonic_now_s();

class SimulatedDevice final : public ReplayDevice {
 public:
  /// computation_of: type of the DAG -> computation of the GPU.
  SimulatedDevice(std::unique_ptr<simulated_gpu::SimulatedGpu> gpu, std::map<int, int> computation_of,
                  Watts blocking_power);
  double now_s() override { return monotonic_now_s(); }
  ComputationStamp run(int type, double start_s, const std::function<void(double)>& started) override;
  double energy_j(double until_s) override;
  [[nodiscard]] Lateness lateness() const override { return lateness_; }

 private:
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  std::map<int, int> computation_of_;
  Watts blocking_power_;
  Lateness lateness_;
};

}  // namespace perseus::replay
