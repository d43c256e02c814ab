#include "planning/planner/late_clocks.h"

#include <algorithm>

namespace perseus::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

LateClocks::LateClocks(const model::ComputationDag& dag, Seconds switch_latency)
    : dag_(dag),
      latency_s_(switch_latency.value()),
      before_(model::neighbors_before_s(dag)),
      end_s_(dag.computations.size()) {}

Realizer::Outcome LateClocks::realize(const model::Plan& plan) {
  const auto clock_of = [&](int i) { return dag_.type_of(i).options[plan[i]].clock; };
  // The next clock-controlled computation of each on its rank; the first follows the last.
  next_on_rank_.assign(plan.size(), -1);
  clocks_.assign(dag_.num_ranks(), {});
  for (int rank = 0; rank < dag_.num_ranks(); ++rank) {
    int first = -1, previous = -1;
    for (const int i : dag_.rank_order[rank]) {
      if (clock_of(i) == Megahertz(0)) continue;
      if (first < 0) first = i;
      if (previous >= 0) next_on_rank_[previous] = i;
      previous = i;
    }
    if (first < 0) continue;
    next_on_rank_[previous] = first;
    clocks_[rank].now = clocks_[rank].requested = clock_of(first);
  }
  const double warm_up_s = iterate(plan);
  for (RankClock& clock : clocks_) clock.arrives_s -= warm_up_s;
  const double makespan_s = iterate(plan);
  return {Seconds(makespan_s), Joules(effective_j_)};
}

double LateClocks::iterate(const model::Plan& plan) {
  effective_j_ = 0;
  double makespan_s = 0;
  for (int i = 0; i < static_cast<int>(plan.size()); ++i) {
    end_s_[i] = model::earliest_start(before_, i, end_s_);
    run(i, plan[i]);
    makespan_s = std::max(makespan_s, end_s_[i]);
    if (next_on_rank_[i] < 0) continue;
    RankClock& clock = clocks_[dag_.computations[i].rank];
    const Megahertz wanted = dag_.type_of(next_on_rank_[i]).options[plan[next_on_rank_[i]]].clock;
    settle(clock, end_s_[i]);
    clock.requested = wanted;
    if (clock.arrives_s < kNever || wanted == clock.now) continue;
    clock.coming = wanted;
    clock.arrives_s = end_s_[i] + latency_s_;
  }
  return makespan_s;
}

// Applies the changes that are complete by then. After each, the change to the newest clock requested meanwhile
// begins.
void LateClocks::settle(RankClock& clock, double until_s) const {
  while (clock.arrives_s <= until_s) {
    clock.now = clock.coming;
    clock.coming = clock.requested;
    clock.arrives_s = clock.coming == clock.now ? kNever : clock.arrives_s + latency_s_;
  }
}

// Runs computation i from its start, end_s_[i], to its end, piece by piece as clocks arrive.
void LateClocks::run(int computation, int option) {
  const model::ComputationType& type = dag_.type_of(computation);
  const double blocking_w = dag_.blocking_power_of(computation).value();
  double& now_s = end_s_[computation];
  RankClock& clock = clocks_[dag_.computations[computation].rank];
  if (type.options[option].clock == Megahertz(0)) {
    const model::Measurement& fixed = type.options[option];
    now_s += fixed.time.value();
    effective_j_ += fixed.energy.value() - blocking_w * fixed.time.value();
    return;
  }
  double left = 1;
  while (left > 0) {
    settle(clock, now_s);
    const model::Measurement& at = type.options[option_at(dag_.computations[computation].type, clock.now, option)];
    const double part = std::min(left, (clock.arrives_s - now_s) / at.time.value());
    now_s = part < left ? clock.arrives_s : now_s + part * at.time.value();
    effective_j_ += part * (at.energy.value() - blocking_w * at.time.value());
    left -= part;
  }
}

int LateClocks::option_at(int type, Megahertz clock, int fallback) const {
  const std::vector<model::Measurement>& options = dag_.types[type].options;
  if (options[fallback].clock == clock) return fallback;
  for (int o = 0; o < static_cast<int>(options.size()); ++o) {
    if (options[o].clock <= clock) return o;
  }
  return static_cast<int>(options.size()) - 1;
}

}  // namespace perseus::planner
