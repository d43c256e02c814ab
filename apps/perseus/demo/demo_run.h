// Runs `perseus demo`: starts server, GPUs and workers, measures each phase, and ends all processes in order.
//
// Problem: see docs/demo.md.
// Input:   a job, a scratch folder.
// Output:  the measurements.
// Errors:  unavailable naming the process that ended (server, worker, helper) and how, the event that did not come in
//          time, or the interrupt (the caller holds an InterruptGuard); cannot_write. However run() ends, tidy() and
//          stop_server() leave no process and no locked clock; the destructor does the same, and kills.
// Cost:    that of the training.
// Threads: one.
#pragma once

#include <memory>

#include "demo/demo_job.h"
#include "demo/demo_output.h"
#include "demo/demo_scratch.h"

namespace perseus::cli {

class DemoRun {
 public:
  /// All three must outlive it.
  DemoRun(const DemoOptions& options, const DemoJob& job, const DemoScratch& scratch);
  DemoRun(const DemoRun&) = delete;
  DemoRun& operator=(const DemoRun&) = delete;
  ~DemoRun();

  Result<DemoMeasurement> run();
  /// Call after success or failure: ends all processes but the server and unlocks all clocks. An Error if any is
  /// left.
  Status tidy();
  /// Keeps the dashboard running until Ctrl-C.
  void keep_server();
  void stop_server();

 private:
  class Steps;
  std::unique_ptr<Steps> steps_;
};

}  // namespace perseus::cli
