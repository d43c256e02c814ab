// A GPU that every machine has: the closed loop between clocks, computations, power and the energy counter, in a file
// that processes share.
//
// Problem: everything that controls and measures GPUs must run, unchanged, where there is none, and must see the
// consequences of what it does. Input: a specification (from a profile: time and power of each computation at each
// clock, blocking and idle power); then clock commands from one process, computations from another. Output: what a
// driver would answer, at any moment; and the truth beside it (exact energy per computation) for tests to compare with.
// Physics: a locked clock takes effect after a latency that depends on the target; a computation progresses at the
// speed of the clock that the device really has, moment by moment; power is the computation's at that clock; if it
// exceeds the power limit, the clock falls to the highest that keeps it (and the event bit says so); the energy counter
// shows what was true at its last refresh. Nothing runs in the background: state is advanced, exactly, whenever
// somebody looks. Time: CLOCK_MONOTONIC unless a test gives another. Errors: create/attach name the file and why. Cost:
// a lock and some hundred nanoseconds a call. Threads and processes: any; a process that dies holding the lock hurts
// nobody (robust mutex). Source: paper section 5; measurements of switch latencies: see shared reference,
// gpu_control_and_metering.
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
  std::string uuid, pci_bus_id;   ///< empty: made from the path
  std::vector<Megahertz> clocks;  ///< supported, highest first
  std::vector<SimulatedComputation> computations;
  std::vector<Watts> blocking_power;  ///< per clock: waiting for another GPU
  Watts idle_power = Watts(50);
  Seconds counter_refresh = Seconds(0.1);
  Seconds power_window = Seconds(0.0);  ///< power() averages over so long; 0: now
  std::vector<Seconds> switch_latency;  ///< per target clock; empty: none
  Seconds set_call_time = Seconds(0);   ///< how long the lock call itself blocks its caller
  Watts power_limit = Watts(400), default_power_limit = Watts(400);
  bool needs_root = false;  ///< setters fail with no permission unless the caller is root
  bool mig = false;
  bool power_smoothing = false;
  std::string architecture = "Ampere";
};

/// What a computation really took, for comparison.
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

  // The driver's side is in simulation/simulated_gpu/simulated_driver.h: device/ and the NVML look-alike are both made
  // of it.

  // The work's side.
  /// From now on that computation runs (its index in the spec); its progress starts at 0.
  void begin(int computation);
  /// How long the rest of it takes if the clock goes on as it is known now (a switch under way included); 0: done.
  [[nodiscard]] Seconds remaining();
  /// It has ended: from now on the GPU waits for another (blocking power) or has nothing to do (idle power).
  void wait();
  void idle();
  /// begin(), then sleep until it is done whatever the clock does meanwhile; after that the GPU waits.
  void run(int computation);

  /// begin() in a process that comes late: as if the computation had begun then (on the time source, not after now), at
  /// the clock that the device has; but at most half of it lies in the past. Returns when it began. The GPU was waiting
  /// or idle until now.
  double begin_in_the_past(int computation, double began_s);
  struct Finished {
    double at_s = 0;  ///< on the time source
    Joules energy;    ///< of this run
  };
  /// Sleeps until what was begun is done whatever the clock does meanwhile. It may hear of it late, but knows when it
  /// was.
  Finished finish();

  // For a caller that waits for more than this GPU: take the count, look, then wait until the count is another one.
  [[nodiscard]] std::uint32_t changes() const;
  void tell_change();
  void wait_change(std::uint32_t seen, double at_most_s) const;

  [[nodiscard]] std::vector<std::string> computations() const;  ///< names, in the specification's order
  [[nodiscard]] std::string uuid() const;
  [[nodiscard]] std::string pci_bus_id() const;

  // The hand of fate.
  void set_power_limit(Watts limit);
  /// The next `times` calls of that driver function ("nvmlDeviceSetGpuLockedClocks", ...) return that NVML code; -1:
  /// all.
  void inject(std::string_view function, int nvml_code, int times);

  // The truth.
  [[nodiscard]] Megahertz clock();
  [[nodiscard]] bool locked();  ///< somebody has locked its clock and not given it back
  [[nodiscard]] Joules energy();
  /// Until that moment of the recent past (on the time source).
  [[nodiscard]] Joules energy(double until_s);
  [[nodiscard]] SimulatedTruth truth(int computation);

 private:
  struct Shared;
  explicit SimulatedGpu(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

}  // namespace perseus::simulated_gpu
