// Runs `perseus demo`: starts server, GPUs and workers, measures each phase, and ends all processes in order.
//
// Problem: see docs/demo.md.
// Input:   a job, a scratch folder.
// Output:  the measurements.
// Errors:  unavailable naming the process that ended (server, worker, helper) and how, the event that did not come in
//          time, or the interrupt (the caller holds an InterruptGuard); cannot_write. However run() ends, tidy() and
//          stop_server() leave no process and no locked clock; the destructor does the same, and kills.
#pragma once

#include <memory>

#include "demo/demo_job.h"
#include "demo/demo_output.h"
#include "demo/demo_scratch.h"

namespace perseus::cli {

template <class Measurement>
class Story {
 public:
  Story() = default;
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;
  virtual ~Story() = default;

  virtual Result<Measurement> run() = 0;
  /// Call after success or failure: ends all processes but the server and unlocks all clocks. An Error if any is
  /// left.
  virtual Status tidy() = 0;
  /// Keeps the dashboard running until Ctrl-C.
  virtual void keep_server() = 0;
  virtual void stop_server() = 0;
};

/// The story 'saving'. All three must outlive it.
std::unique_ptr<Story<DemoMeasurement>> demo_run(const DemoOptions& options, const DemoJob& job,
                                                 const DemoScratch& scratch);

}  // namespace perseus::cli
