// A timeline as a recorder would write it, of a job that runs a known schedule with known times.
//
// Input:   schedule, pipelines, steps, and the time of each computation.
// Output:  a Chrome trace of the names in kSyntheticNames: pid is the pipeline, tid the rank.
// Errors:  none.
// Threads: pure function.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "planning/model/schedule.h"

namespace perseus::testing {

inline constexpr std::string_view kSyntheticNames = R"([places]
data = "pid"
rank = "tid"
step = "args.step"
microbatch = "args.microbatch"
stage = "args.stage"
[events]
forward = ["forward"]
backward = ["backward"]
input_gradient = ["input_gradient"]
weight_gradient = ["weight_gradient"]
recompute = ["recompute"]
pure_backward = ["pure_backward"]
forward_receive = ["forward_receive"]
backward_receive = ["backward_receive"]
forward_send = ["forward_send"]
backward_send = ["backward_send"]
gradient_reduce = ["gradient_reduce"]
)";

struct SyntheticJob {
  model::Schedule schedule;
  int pipelines = 1, steps = 1;
  std::function<double(const model::Action&, int pipeline, int step)> seconds;
  double transfer_s = 0;  ///< of each result to another rank, in the timeline if > 0; schedules of one chunk
  /// The sender's side: none, its sends while it computes on, or sends that it waits for.
  enum class Sends { none, beside, waits } sends = Sends::none;
};

std::string synthetic_timeline(const SyntheticJob& job);

}  // namespace perseus::testing
