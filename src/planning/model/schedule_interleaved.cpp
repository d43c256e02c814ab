// Interleaved 1F1B: each rank holds V stages (chunks) and switches to the next after each round of microbatches.
//
// The order is PyTorch's, which is Megatron's with rounds of any size. With one stage per rank and a split backward
// it is the zero-bubble schedule ZB-H1: its weight gradients run `rank` steps late and so fill the cool-down.
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
