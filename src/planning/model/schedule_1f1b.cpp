// One forward, one backward (PipeDream-flush), and the variant that recomputes activations ahead of each backward.
#include <algorithm>

#include "planning/model/make_schedule.h"
#include "planning/model/schedule_generators.h"

namespace perseus::model::schedules {

Ranks one_forward_one_backward(const ScheduleShape& shape) {
  using enum Instruction;
  Ranks ranks(shape.num_ranks);
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    auto& actions = ranks[rank];
    actions.reserve(2 * shape.num_microbatches);
    // Rank r must have this many microbatches in flight before the first gradient can reach it.
    const int warm_up = std::min(shape.num_ranks - 1 - rank, shape.num_microbatches);
    for (int m = 0; m < warm_up; ++m) actions.push_back({forward, rank, m});
    for (int m = warm_up; m < shape.num_microbatches; ++m) {
      actions.push_back({forward, rank, m});
      actions.push_back({backward, rank, m - warm_up});
    }
    for (int m = shape.num_microbatches - warm_up; m < shape.num_microbatches; ++m) {
      actions.push_back({backward, rank, m});
    }
  }
  return ranks;
}

// As in Merak: in the steady state a backward recomputes within itself; in the cool-down a rank waits between two
// backwards and recomputes meanwhile. The last rank has no cool-down.
Ranks early_recompute(const ScheduleShape& shape) {
  using enum Instruction;
  Ranks ranks = one_forward_one_backward(shape);
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    auto& actions = ranks[rank];
    const int cool_down = std::min(shape.num_ranks - 1 - rank, shape.num_microbatches);
    actions.resize(actions.size() - cool_down);
    for (int m = shape.num_microbatches - cool_down; m < shape.num_microbatches; ++m) {
      actions.push_back({recompute, rank, m});
      actions.push_back({pure_backward, rank, m});
    }
  }
  return ranks;
}

}  // namespace perseus::model::schedules
