// The three jobs of `perseus demo --story power`: a pipeline, an interleaved one and a data-parallel one.
//
// Input:   the demo's options, but for the shape; a scratch folder, in which each job has one of its own.
// Output:  their iterations as they come; the reserve that a meter over a window needs.
// Errors:  those of starting and of workers that end; the interrupt.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "demo/demo_gpus.h"
#include "demo/demo_job.h"
#include "demo/demo_scratch.h"
#include "demo/demo_training.h"

namespace perseus::cli {

struct StoryIteration {
  double start_s = 0, end_s = 0;  ///< device time, CLOCK_MONOTONIC
};

class StoryJob {
 public:
  StoryJob(std::string shape, DemoOptions options, DemoJob job, DemoScratch scratch, DemoStage& stage,
           DemoServer& server);
  StoryJob(const StoryJob&) = delete;
  StoryJob& operator=(const StoryJob&) = delete;

  const std::string shape;
  const DemoOptions options;
  const DemoJob job;
  const DemoScratch scratch;
  DemoGpus gpus;
  DemoTraining training;
  std::vector<StoryIteration> iterations;
  bool follows_plan = false;  ///< in the last iteration, on all ranks
  bool killed = false;

  [[nodiscard]] int num_gpus() const { return training.workers(); }
  [[nodiscard]] Seconds longest_computation() const;
  /// Mean power at maximum clock.
  [[nodiscard]] Watts all_max_power() const;
  /// Takes the iterations that have ended.
  Status look(int limit_ms);
  /// Ends all processes at once, helpers too, as a scheduler or a lost node does.
  void kill();
  /// Iterations that began and ended between these moments.
  [[nodiscard]] std::vector<StoryIteration> between(double from_s, double until_s) const;
};

using StoryJobs = std::vector<std::unique_ptr<StoryJob>>;

/// An error before anything starts, for a profile that one of the shapes does not fit.
Result<StoryJobs> story_jobs(const DemoOptions& options, const DemoScratch& scratch, DemoStage& stage,
                             DemoServer& server);

/// How far the mean over a window may exceed the jobs' mean power, because jobs swing within their iterations: the sum
/// of their greatest deviations at maximum clock and at least energy.
Watts swing_reserve(const StoryJobs& jobs, Seconds window);

}  // namespace perseus::cli
