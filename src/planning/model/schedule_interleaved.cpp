// Interleaved 1F1B: each rank holds V stages (chunks) and switches to the next after each round of microbatches.
//
// The order is PyTorch's, which is Megatron's with rounds of any size.
#include <algorithm>

#include "planning/model/make_schedule.h"
#include "planning/model/schedule_generators.h"

namespace perseus::model::schedules {
namespace {

/// One rank's forwards in order, and its backwards in order: the k-th of each.
class Walk {
 public:
  Walk(const ScheduleShape& shape, int rank) : shape_(shape), rank_(rank), per_round_(microbatches_per_round(shape)) {}

  [[nodiscard]] int length() const { return shape_.num_microbatches * shape_.chunks; }
  [[nodiscard]] Action forward(int k) const { return {Instruction::forward, stage(chunk(k)), microbatch(k)}; }
  /// Backwards take the chunks in the opposite order.
  [[nodiscard]] Action backward(Instruction kind, int k) const {
    return {kind, stage(shape_.chunks - 1 - chunk(k)), microbatch(k)};
  }

 private:
  [[nodiscard]] int chunk(int k) const { return k / per_round_ % shape_.chunks; }
  [[nodiscard]] int stage(int chunk) const { return chunk * shape_.num_ranks + rank_; }
  [[nodiscard]] int microbatch(int k) const { return k / (per_round_ * shape_.chunks) * per_round_ + k % per_round_; }

  const ScheduleShape& shape_;
  int rank_;
  int per_round_;
};

}  // namespace

int microbatches_per_round(const ScheduleShape& shape) {
  return shape.num_microbatches / std::max(1, shape.num_microbatches / shape.num_ranks);
}

Ranks interleaved(const ScheduleShape& shape) {
  Ranks ranks(shape.num_ranks);
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    const Walk walk(shape, rank);
    auto& actions = ranks[rank];
    actions.reserve(2 * walk.length());
    const int hops = shape.num_ranks - 1 - rank;
    const int warm_up = std::min(walk.length(), (shape.chunks - 1) * microbatches_per_round(shape) + 2 * hops);
    for (int k = 0; k < warm_up; ++k) actions.push_back(walk.forward(k));
    for (int k = 0; k < walk.length(); ++k) {
      if (warm_up + k < walk.length()) actions.push_back(walk.forward(warm_up + k));
      actions.push_back(walk.backward(Instruction::backward, k));
    }
  }
  return ranks;
}

}  // namespace perseus::model::schedules
