// GPipe: all forwards, then all backwards, both in microbatch order (as in PyTorch's ScheduleGPipe).
#include "planning/model/make_schedule.h"
#include "planning/model/schedule_generators.h"

namespace perseus::model::schedules {

Ranks gpipe(const ScheduleShape& shape) {
  Ranks ranks(shape.num_ranks);
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    auto& actions = ranks[rank];
    actions.reserve(2 * shape.num_microbatches);
    for (int m = 0; m < shape.num_microbatches; ++m) actions.push_back({Instruction::forward, rank, m});
    for (int m = 0; m < shape.num_microbatches; ++m) actions.push_back({Instruction::backward, rank, m});
  }
  return ranks;
}

}  // namespace perseus::model::schedules
