// How the power of a job swings around its mean within the window of a meter, plan by plan.
//
// Problem: a guard below a limit needs the swing of the plans that jobs may follow, and a division considers a few of
//          the thousand plans of each frontier. Jobs with the same profile have the same plans.
// Model:   the pipelines of a job begin their iterations together, so that their swings add up. After its computations
//          a pipeline waits for the job's iteration time. A straggling one counts with the power over time of its own
//          plan as if it were not slow: stretched, it swings less.
// Input:   frontiers of the job's pipelines, and how many copies of each there are.
// Output:  upper bounds of the swing, see planning/site/window_guard.h.
// Errors:  none.
// Cost:    of a plan: one iteration when it is first asked for, then a lookup. Swings are kept as long as a job has the
//          frontier.
// Threads: JobSwing: const methods are safe concurrently. SwingLibrary: one thread.
// Source:  docs/decisions/0058.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planning/site/power_over_iteration.h"
#include "planning/site/window_guard.h"
#include "server/policies/deployment.h"

namespace perseus::power {

/// Of one pipeline with that frontier.
class PipelineSwings {
 public:
  explicit PipelineSwings(std::shared_ptr<const jobs::CharacterizedPipeline> pipeline);

  [[nodiscard]] const jobs::CharacterizedPipeline& pipeline() const { return *pipeline_; }
  /// Of a point of the frontier (kMaximumClock: everything at maximum clock) in iterations of that time.
  site::WindowSwing at(int point, Seconds time, Seconds window);

  static constexpr int kMaximumClock = -1;

 private:
  std::shared_ptr<const jobs::CharacterizedPipeline> pipeline_;
  std::mutex mutex_;
  std::optional<site::PowerOverIteration> power_;                       ///< once it is needed
  std::map<std::tuple<int, double, double>, site::WindowSwing> known_;  ///< by point, time and window
};

class JobSwing {
 public:
  struct Part {
    std::shared_ptr<PipelineSwings> swings;
    double following = 0, straggling = 0;  ///< copies of the accelerators that the frontier counts
  };
  JobSwing(std::shared_ptr<const policies::PowerChoices> choices, std::vector<Part> parts)
      : choices_(std::move(choices)), parts_(std::move(parts)) {}

  [[nodiscard]] const policies::PowerChoices& choices() const { return *choices_; }

  /// Of one of its plans.
  [[nodiscard]] site::WindowSwing of_plan(const policies::PowerAtTime& plan, Seconds window) const;
  [[nodiscard]] site::WindowSwing of_maximum_clock(Seconds window) const;

 private:
  std::shared_ptr<const policies::PowerChoices> choices_;
  std::vector<Part> parts_;
};

class SwingLibrary {
 public:
  std::shared_ptr<const JobSwing> of(const std::shared_ptr<const policies::PowerChoices>& choices);

 private:
  std::map<std::string, std::weak_ptr<PipelineSwings>> by_frontier_;
  std::size_t clean_from_ = 16;  ///< at that size, frontiers that no job has are left out
};

}  // namespace perseus::power
