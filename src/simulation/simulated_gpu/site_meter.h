// The power meter of a site of simulated GPUs: the energy of all of them together, at equal intervals.
//
// Problem: whether a site keeps its limits must be judged without the server, the clients and their counters.
// Method:  attaches to the state files of the GPUs, which remember their energy at moments of the recent past
//          exactly. So a reading may come late, and its moments are those of the interval all the same. A reading stays
//          `behind` the present: processes that begin a computation in the past change that past (by half of a
//          computation at most).
// Input:   the state files; the interval. They remember 4,096 changes of power: some ten seconds of short computations.
// Output:  readings, each the energy since the GPUs were made.
// Errors:  those of attaching; unavailable: a GPU has forgotten its energy at a reading's moment.
// Cost:    a lock per GPU and reading.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulation/simulated_gpu/simulated_gpu.h"

namespace perseus::simulated_gpu {

struct MeterSample {
  double at_s = 0;  ///< on the time source
  Joules energy;    ///< of all GPUs
};

class SiteMeter {
 public:
  static Result<SiteMeter> attach(const std::vector<std::string>& files, Seconds interval, Seconds behind,
                                  SimulatedGpu::TimeSource now);

  /// Takes all readings that are due.
  Status read();
  [[nodiscard]] const std::vector<MeterSample>& samples() const { return samples_; }

 private:
  SiteMeter(Seconds interval, Seconds behind, SimulatedGpu::TimeSource now);

  std::vector<std::unique_ptr<SimulatedGpu>> gpus_;
  double interval_s_, behind_s_, first_s_;
  SimulatedGpu::TimeSource now_;
  std::vector<MeterSample> samples_;
};

}  // namespace perseus::simulated_gpu
