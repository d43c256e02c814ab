// One forward, one backward (PipeDream-flush), and its variants: activations recomputed ahead of each backward, and the
// split backward of zero bubble.
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

// ZB-H1: weight gradients run `rank` steps late and so fill the cool-down.
Ranks zero_bubble(const ScheduleShape& shape) {
  using enum Instruction;
  Ranks ranks(shape.num_ranks);
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    auto& actions = ranks[rank];
    const int count = shape.num_microbatches;
    actions.reserve(3 * count);
    const int warm_up = std::min(count, shape.num_ranks - 1 - rank);
    const int late = std::min(count, rank);
    for (int m = 0; m < warm_up; ++m) actions.push_back({forward, rank, m});
    for (int m = 0; m < count; ++m) {
      if (warm_up + m < count) actions.push_back({forward, rank, warm_up + m});
      actions.push_back({input_gradient, rank, m});
      if (m >= late) actions.push_back({weight_gradient, rank, m - late});
    }
    for (int m = count - late; m < count; ++m) actions.push_back({weight_gradient, rank, m});
  }
  return ranks;
}

}  // namespace perseus::model::schedules
