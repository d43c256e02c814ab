// The course of `perseus demo`: server, GPUs and workers are started, each phase is measured, all of it ends in order.
//
// Problem: see docs/demo.md. Input: a job, a scratch folder. Output: what was measured. Errors: unavailable naming the
// process that ended (server, worker, helper) and how, what did not come in time, or that it was interrupted (the
// caller holds an InterruptGuard); cannot_write. However run() ends, tidy() and stop_server() leave no process and no
// locked clock; the destructor does the same, and kills. Cost: that of the training. Threads: one.
#pragma once

#include <memory>

#include "demo_job.h"
#include "demo_output.h"
#include "demo_scratch.h"

namespace perseus::cli {

class DemoCourse {
 public:
  /// All three must outlive it.
  DemoCourse(const DemoOptions& options, const DemoJob& job, const DemoScratch& scratch);
  DemoCourse(const DemoCourse&) = delete;
  DemoCourse& operator=(const DemoCourse&) = delete;
  ~DemoCourse();

  Result<DemoMeasurement> run();
  /// After success or failure: no process of ours is left but the server, no clock is locked. An Error if one is.
  Status tidy();
  /// Leaves the dashboard up until Ctrl-C.
  void keep_server();
  void stop_server();

 private:
  class Course;
  std::unique_ptr<Course> course_;
};

}  // namespace perseus::cli
