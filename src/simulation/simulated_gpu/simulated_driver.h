// The driver's side of a simulated GPU, on which the simulated device backend and the simulated NVML library are
// built.
//
// Problem: both must show one and the same device.
// Input:   the path of a state file; then a driver's queries and commands.
// Output:  a driver's results, in units (callers convert to whole milliwatts). Setters return a code of NVML (0:
//          done, 2: bad argument, 4: no permission), since injected faults have those codes.
// Errors:  attach() as SimulatedGpu::attach.
// Cost:    a lock and some hundred nanoseconds; a setter also blocks for the specification's set_call_time, after the
//          command has been issued.
// Threads: any, in any process.
// Source:  docs/simulated_gpu.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "simulation/simulated_gpu/simulated_gpu.h"

namespace perseus::simulated_gpu {

class StateFile;

class SimulatedDriver {
 public:
  static Result<std::unique_ptr<SimulatedDriver>> attach(const std::string& path, SimulatedGpu::TimeSource now = {});
  SimulatedDriver(const SimulatedDriver&) = delete;
  SimulatedDriver& operator=(const SimulatedDriver&) = delete;
  ~SimulatedDriver();

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string uuid() const;
  [[nodiscard]] std::string pci_bus_id() const;    ///< "00000000:01:00.0"
  [[nodiscard]] std::string architecture() const;  ///< "Ampere"
  [[nodiscard]] bool mig() const;
  [[nodiscard]] bool power_smoothing() const;
  [[nodiscard]] std::vector<Megahertz> clocks() const;  ///< highest first

  Megahertz clock();      ///< current clock
  Joules counter();       ///< as of its last refresh
  Watts power();          ///< now
  Watts average_power();  ///< over the specification's window
  Watts power_limit();
  [[nodiscard]] Watts default_power_limit() const;
  /// Lowest and highest limit that set_power_limit() takes.
  [[nodiscard]] std::pair<Watts, Watts> power_limit_range() const;
  bool power_capped();         ///< now
  Seconds power_capped_for();  ///< total
  bool idle();
  bool persistence();
  std::vector<int> processes();  ///< alive processes that have computed on it
  /// Average power over the last `count` whole periods, oldest first, with the end of each, s of this GPU's clock.
  std::vector<std::pair<double, Watts>> power_samples(Seconds period, int count);
  /// The time of this GPU's clock, s.
  double now_s();

  /// Clocks within [least, most]: the highest supported one not above `most`, or the lowest.
  int lock_clocks(Megahertz least, Megahertz most);
  int unlock_clocks();
  int set_power_limit(Watts limit);
  int set_persistence(bool on);

  /// The injected return code of this call of that function; 0: none.
  int fault(std::string_view function);

 private:
  explicit SimulatedDriver(std::unique_ptr<simulated_gpu::StateFile> file);
  [[nodiscard]] bool permitted() const;
  void block();

  std::unique_ptr<simulated_gpu::StateFile> file_;
};

}  // namespace perseus::simulated_gpu
