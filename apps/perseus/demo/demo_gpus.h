// The simulated GPUs of `perseus demo`, one per worker, and the clock helpers on them.
//
// Input:   the job; a scratch folder for their files.
// Output:  files for the workers; limits of their power.
// Errors:  cannot_write; unavailable if a clock stays locked.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "demo/demo_job.h"
#include "demo/demo_scratch.h"
#include "simulation/replay/kernel_state.h"
#include "simulation/replay/unlock_wait.h"
#include "simulation/simulated_gpu/simulated_gpu.h"

namespace perseus::cli {

/// One of the two processes of a clock helper.
struct HelperProcess {
  int worker;
  pid_t pid;
  bool is_supervisor;
};

class DemoGpus {
 public:
  DemoGpus(const DemoOptions& options, const DemoJob& job, const DemoScratch& scratch)
      : o_(options), job_(job), scratch_(scratch) {}

  /// Makes a folder for leases on these GPUs' clocks, and sets it for all processes that this one starts.
  Status make_leases() const;
  Status make();
  /// State file of each GPU.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  /// Unique to this demo: several may run at once. Workers are counted over all its jobs.
  [[nodiscard]] static std::string uuid_of(int worker);
  /// To the highest clock, and to the lowest.
  [[nodiscard]] std::pair<Seconds, Seconds> switch_latencies() const;

  void cap(int replica, Watts limit);
  void uncap(int replica);
  /// Waits until no clock is locked, as long as helpers are at work, and continues those that a signal has stopped.
  /// Unlocks in place of helpers that were killed (a note says so).
  [[nodiscard]] Status wait_until_unlocked() const;

  /// This demo's stopped helper processes: by the names that perseus-clockd gives its processes, and the GPU in their
  /// arguments.
  [[nodiscard]] std::vector<HelperProcess> stopped_helpers() const;
  void continue_stopped_helpers() const;
  void kill_helpers() const;

 private:
  struct FoundHelper {
    int worker;
    pid_t pid;
    replay::KernelState state;
  };
  /// The processes of helpers on these GPUs, dead ones excepted.
  [[nodiscard]] std::vector<FoundHelper> helpers() const;
  [[nodiscard]] replay::UnlockWait::Seen seen() const;
  static void restore_expired();

  const DemoOptions& o_;
  const DemoJob& job_;
  const DemoScratch& scratch_;
  std::vector<std::string> files_;
  std::vector<std::unique_ptr<simulated_gpu::SimulatedGpu>> gpus_;
  std::vector<Watts> limits_;
};

}  // namespace perseus::cli
