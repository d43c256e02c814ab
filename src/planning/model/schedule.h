// A pipeline schedule: the execution order of each rank's computations in one iteration.
//
// Shape:   ranks[r] is rank r's actions in execution order. A stage is a model chunk in forward order (PyTorch's
//          stage_index); a rank holds one stage, or several (interleaved: stages r, r+P, ...; V-shaped: r and 2P-1-r).
//          Microbatches count from 0. The ordering *between* ranks follows from the actions, see
//          planning/model/computation_dag.h, and from early_receives.
// Errors:  validate() names rank, action, and the expected value; build_dag() finds deadlocks.
// Threads: plain value.
// Source:  paper section 4.4; docs/schedules.md shows a picture of each schedule.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "planning/model/instruction.h"

namespace perseus::model {

struct Action {
  Instruction instruction = Instruction::forward;
  int stage = 0;
  int microbatch = 0;  ///< -1 for once-per-iteration instructions (all_reduce, optimizer_step)
  bool operator==(const Action&) const = default;
};

/// Text for messages: "forward of stage 2, microbatch 0".
std::string text_of(const Action& action);

/// A rank that receives a result before it needs it: its action `after` waits for `before` of another rank.
struct EarlyReceive {
  Action before, after;
  bool operator==(const EarlyReceive&) const = default;
};

struct Schedule {
  std::string name;
  int num_stages = 0;
  int num_microbatches = 0;
  std::vector<std::vector<Action>> ranks;
  std::vector<EarlyReceive> early_receives = {};  ///< both actions are in `ranks`

  [[nodiscard]] int num_ranks() const { return static_cast<int>(ranks.size()); }
  /// Every (stage, microbatch) exactly once in each of its forms: one forward and one backward, or
  /// input_gradient + weight_gradient, or recompute + pure_backward; a stage lives on one rank.
  [[nodiscard]] Status validate() const;
};

/// The boundaries between ranks over which it sends (transfer_latency.h numbers them): N - 1 of N ranks, or N if the
/// last rank and the first exchange results too (N > 2).
int boundary_count(const Schedule& schedule);

}  // namespace perseus::model
