// A simulated GPU: the closed loop between clocks, computations, power and the energy counter, in a file that
// processes share.
//
// Physics: a locked clock takes effect after a latency that depends on the target; a computation progresses at the
// speed of the clock that the device really has, moment by moment; power is the computation's at that clock; if it
// exceeds the power limit, the clock falls to the highest that keeps it (and the event bit is set); the energy
// counter shows the energy as of its last refresh. Nothing runs in the background: every access advances the state,
// exactly. Time: CLOCK_MONOTONIC unless a test provides another.
//
// Problem: everything that controls and measures GPUs must run, unchanged, on machines without GPUs, and must see the
//          consequences of its actions.
// Input:   a specification (from a profile: time and power of each computation at each clock, blocking and idle
//          power); then clock commands from one process, computations from another.
// Output:  a driver's results, at any moment; and exact values (energy per computation) for tests to compare with.
// Errors:  create/attach name the file and the reason.
// Cost:    a lock and some hundred nanoseconds a call.
// Threads: any, in any process; a process that dies while it holds the lock does no harm (robust mutex).
// Source:  paper section 5; switch latencies: docs/simulated_gpu.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace perseus::simulated_gpu {

struct SimulatedComputation {
  std::string name;           ///< "forward", "backward", ...
  std::vector<Seconds> time;  ///< per clock, as SimulatedGpuSpec::clocks
  std::vector<Watts> power;   ///< per clock
};

struct SimulatedGpuSpec {
  std::string name = "Perseus simulated GPU";
  std::string uuid, pci_bus_id;   ///< empty: derived from the path
  std::vector<Megahertz> clocks;  ///< supported, highest first
  std::vector<SimulatedComputation> computations;
  std::vector<Watts> blocking_power;  ///< per clock: waiting for another GPU
  Watts idle_power = Watts(50);
  Seconds counter_refresh = Seconds(0.1);
  Seconds power_window = Seconds(0.0);  ///< averaging window of power(); 0: none
  std::vector<Seconds> switch_latency;  ///< per target clock; empty: none
  Seconds set_call_time = Seconds(0);   ///< how long the lock call itself blocks its caller
  Watts power_limit = Watts(400), default_power_limit = Watts(400);
  bool needs_root = false;  ///< setters fail with no permission unless the caller is root
  bool mig = false;
  bool power_smoothing = false;
  std::string architecture = "Ampere";
};

/// Exact time and energy of a computation, for comparison.
struct SimulatedTruth {
  std::int64_t runs = 0;
  Seconds time;
  Joules energy;
};

class SimulatedGpu {
 public:
  using TimeSource = std::function<double()>;  ///< s, monotonic
  static Result<std::unique_ptr<SimulatedGpu>> create(const std::string& path, const SimulatedGpuSpec& spec,
                                                      TimeSource now = {});
  static Result<std::unique_ptr<SimulatedGpu>> attach(const std::string& path, TimeSource now = {});
  SimulatedGpu(const SimulatedGpu&) = delete;
  SimulatedGpu& operator=(const SimulatedGpu&) = delete;
  ~SimulatedGpu();

  // The driver's side is in simulation/simulated_gpu/simulated_driver.h: the simulated device backend and the
  // simulated NVML library are built on it.

  // The work's side.
  /// Starts that computation (its index in the spec) with progress 0.
  void begin(int computation);
  /// Remaining time at the clocks known now (including a switch in progress); 0: done.
  [[nodiscard]] Seconds remaining();
  /// The computation has ended: from now on the GPU waits for another (blocking power) or is idle (idle power).
  void wait();
  void idle();
  /// begin(), then sleeps until it is done, across all clock changes; then the GPU waits.
  void run(int computation);

  /// begin() in a process that comes late: as if the computation had begun then (on the time source, not after now),
  /// at the clock that the device has; but at most half of it lies in the past. Returns when it began. The GPU was
  /// waiting or idle until now.
  double begin_in_the_past(int computation, double began_s);
  struct Finished {
    double at_s = 0;  ///< on the time source
    Joules energy;    ///< of this run
  };
  /// Sleeps until the computation is done, across all clock changes. It may return late, but knows the time of the
  /// end.
  Finished finish();

  // For a caller that waits for more than this GPU: read the count, check, then wait until the count changes.
  [[nodiscard]] std::uint32_t changes() const;
  void tell_change();
  void wait_change(std::uint32_t seen, double at_most_s) const;

  [[nodiscard]] std::vector<std::string> computations() const;  ///< names, in the specification's order
  [[nodiscard]] std::string uuid() const;
  [[nodiscard]] std::string pci_bus_id() const;

  // Fault injection.
  void set_power_limit(Watts limit);
  /// The next `times` calls of that driver function ("nvmlDeviceSetGpuLockedClocks", ...) return that NVML code; -1:
  /// all.
  void inject(std::string_view function, int nvml_code, int times);

  // Exact values.
  [[nodiscard]] Megahertz clock();
  [[nodiscard]] bool locked();  ///< its clock is locked and was not given back
  /// locked() while all its processes are stopped: one of them may hold the file's lock.
  [[nodiscard]] bool locked_while_stopped() const;
  [[nodiscard]] Joules energy();
  /// Until that moment of the recent past (on the time source).
  [[nodiscard]] Joules energy(double until_s);
  /// How far back that past reaches.
  [[nodiscard]] double remembered_from_s();
  [[nodiscard]] SimulatedTruth truth(int computation);

 private:
  struct Shared;
  explicit SimulatedGpu(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

}  // namespace perseus::simulated_gpu
