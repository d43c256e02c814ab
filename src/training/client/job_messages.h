// Log lines of rank 0 about its job: one at the start, and one at each change of the plan.
//
// Problem: a client that works is silent; the person who started the job wants to know that it does, and what to
//          expect.
// Input:   options and facts of the rank; the plans as they arrive.
// Output:  lines for the log at level info. Other ranks log no changes of plan, only why a job has none.
// Cost:    once per plan.
// Threads: one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "training/client/complaints.h"
#include "training/client/messages.h"

namespace perseus::client {

/// What the line at the start says about the rank's GPU.
struct RankGpu {
  std::string name;        ///< of a simulated one it says so; empty: there is none
  std::string no_control;  ///< why no clock is set; empty: clocks are set
};

/// "job j-7 (gpt3) at http://head:7787: 8 ranks, 1f1b with 12 microbatches, profile gpt3-xl; rank 0 on node1: ..."
std::string start_message(std::string_view job, const ClientOptions& options, const RankFacts& facts,
                          const RankGpu& gpu);

News news_of(ClockPlan::Kind kind);

class PlanMessages {
 public:
  explicit PlanMessages(bool every_change) : every_change_(every_change) {}
  /// The line for a plan that has just arrived; nothing if it says no more than the last one.
  /// Where this rank, or another one, sets no clocks, the saving is one that would be.
  std::optional<std::string> arrived(std::string_view job, const ClockPlan& plan, bool sets_clocks = true);

 private:
  bool every_change_;
  std::string last_;
};

}  // namespace perseus::client
