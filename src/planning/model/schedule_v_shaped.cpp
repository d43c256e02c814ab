// The V-shaped schedules: rank r holds stages r and 2P-1-r, so a microbatch passes down the ranks and back up.
//
// ZBV (Qi et al. 2024) fills bubbles with weight gradients; DualPipeV (DeepSeek) pairs the forward of one direction
// with the backward of the other. Both follow the order of PyTorch's ScheduleZBVZeroBubble and ScheduleDualPipeV. The
// two computations of an overlapped pair of DualPipeV run one after the other, forward first.
#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>

#include "planning/model/make_schedule.h"
#include "planning/model/schedule_generators.h"

namespace perseus::model::schedules {
namespace {

using enum Instruction;

/// The two stages of a rank: `down` is stage r, `up` is stage 2P-1-r. Each runs its microbatches in order.
enum Way : std::size_t { down = 0, up = 1 };

class RankOrder {
 public:
  RankOrder(int num_ranks, int rank, int num_microbatches)
      : stages_{rank, 2 * num_ranks - 1 - rank}, num_microbatches_(num_microbatches) {}

  void run_forward(Way way) { add(forward, way, forwards_[way]++); }
  void run_backward(Way way) { add(backward, way, backwards_[way]++); }
  /// Runs an input gradient and defers its weight gradient.
  void run_input_gradient(Way way) {
    owed_.push_back({weight_gradient, stages_[way], backwards_[way]});
    add(input_gradient, way, backwards_[way]++);
  }
  /// Appends the weight gradient deferred longest, if any.
  void run_weight_gradient() {
    if (owed_.empty()) return;
    add(owed_.front());
    owed_.pop_front();
  }
  /// The same for one of the two ways.
  void run_weight_gradient(Way way) {
    const auto oldest = std::ranges::find(owed_, stages_[way], &Action::stage);
    if (oldest == owed_.end()) return;
    add(*oldest);
    owed_.erase(oldest);
  }
  void run_split_backward(Way way) {
    run_input_gradient(way);
    run_weight_gradient(way);
  }

  [[nodiscard]] int forwards(Way way) const { return forwards_[way]; }
  [[nodiscard]] bool owes(Way way) const {
    return std::ranges::find(owed_, stages_[way], &Action::stage) != owed_.end();
  }
  [[nodiscard]] std::vector<Action> take() { return std::move(actions_); }

 private:
  void add(Instruction instruction, Way way, int microbatch) { add({instruction, stages_[way], microbatch}); }
  void add(const Action& action) {
    if (action.microbatch < num_microbatches_) actions_.push_back(action);  // ZBV plans for more, see zbv()
  }

  std::array<int, 2> stages_;
  int num_microbatches_;
  std::array<int, 2> forwards_{};
  std::array<int, 2> backwards_{};
  std::deque<Action> owed_;
  std::vector<Action> actions_;
};

}  // namespace

Ranks zbv(const ScheduleShape& shape) {
  const int num_ranks = shape.num_ranks;
  // Fewer microbatches than fill the pipeline: plan for a full one and omit the missing microbatches.
  const int count = std::max(2 * num_ranks - 1, shape.num_microbatches);
  Ranks ranks(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    RankOrder order(num_ranks, rank, shape.num_microbatches);
    for (int i = 0; i < 2 * (num_ranks - rank) - 1; ++i) order.run_forward(down);
    for (int i = 0; i < rank; ++i) {
      order.run_forward(up);
      order.run_forward(down);
    }
    for (int i = 0; i < num_ranks - rank; ++i) {
      order.run_forward(up);
      order.run_split_backward(up);
    }
    while (order.forwards(up) < order.forwards(down) || order.forwards(down) < count) {
      if (order.forwards(down) < count) order.run_forward(down);
      order.run_split_backward(down);
      order.run_forward(up);
      order.run_split_backward(up);
    }
    for (int i = 0; i < rank; ++i) {
      order.run_input_gradient(down);
      order.run_input_gradient(up);
    }
    for (int i = 0; i < num_ranks - rank; ++i) {
      order.run_input_gradient(down);
      order.run_weight_gradient(down);
    }
    while (order.owes(up)) order.run_weight_gradient(up);
    while (order.owes(down)) order.run_weight_gradient(down);
    ranks[rank] = order.take();
  }
  return ranks;
}

Ranks dualpipev(const ScheduleShape& shape) {
  const int num_ranks = shape.num_ranks;
  Ranks ranks(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    RankOrder order(num_ranks, rank, shape.num_microbatches);
    const int hops = num_ranks - 1 - rank;  // to the turn of the V
    for (int i = 0; i < 2 * hops; ++i) order.run_forward(down);
    for (int i = 0; i < rank + 1; ++i) {
      order.run_forward(down);
      order.run_forward(up);
    }
    for (int i = 0; i < hops; ++i) {
      order.run_input_gradient(up);
      order.run_weight_gradient();
      order.run_forward(up);
    }
    for (int i = 0; i < shape.num_microbatches - 2 * num_ranks + rank + 1; ++i) {
      order.run_forward(down);
      order.run_backward(up);
      order.run_forward(up);
      order.run_backward(down);
    }
    for (int i = 0; i < hops; ++i) {
      order.run_backward(up);
      order.run_forward(up);
      order.run_backward(down);
    }
    // No forwards are left: from the middle on, defer weight gradients to fill the bubbles that follow.
    const int middle = (rank + 1) / 2;
    bool split = false;
    const auto run = [&](Way way) { split ? order.run_input_gradient(way) : order.run_backward(way); };
    for (int i = 0; i < rank + 1; ++i) {
      if (i == middle && rank % 2 == 1) split = true;
      run(up);
      if (i == middle && rank % 2 == 0) split = true;
      run(down);
    }
    for (int i = 0; i < hops; ++i) {
      order.run_weight_gradient();
      run(down);
    }
    for (int i = 0; i < rank + 1; ++i) order.run_weight_gradient();
    ranks[rank] = order.take();
  }
  return ranks;
}

}  // namespace perseus::model::schedules
