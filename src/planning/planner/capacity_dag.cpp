#include "planning/planner/capacity_dag.h"

#include "base/result.h"
#include "planning/planner/candidate_options.h"

namespace perseus::planner {
namespace {

constexpr std::int64_t kUnbounded = graph::BoundedMaxFlow::kUnbounded;

auto units_of(Seconds unit) {
  return [unit](const model::Dependency& d) { return floor_to_units(d.latency, unit); };
}

/// All arcs closed: computations, dependencies by `before`, from the source to each, from each to the sink.
std::vector<graph::BoundedMaxFlow::Arc> make_arcs(const model::ComputationDag& dag,
                                                  const model::Neighbors<std::int64_t>& after) {
  const int n = static_cast<int>(dag.computations.size());
  const int source = 2 * n, sink = 2 * n + 1;
  std::vector<graph::BoundedMaxFlow::Arc> arcs;
  arcs.reserve(3 * n + dag.dependencies.size());
  for (int i = 0; i < n; ++i) arcs.push_back({2 * i, 2 * i + 1, 0, 0});
  for (int i = 0; i < n; ++i) {
    for (const auto& next : after.of(i)) arcs.push_back({2 * i + 1, 2 * next.computation, 0, 0});
  }
  for (int i = 0; i < n; ++i) arcs.push_back({source, 2 * i, 0, 0});
  for (int i = 0; i < n; ++i) arcs.push_back({2 * i + 1, sink, 0, 0});
  return arcs;
}

}  // namespace

CapacityDag::CapacityDag(const model::ComputationDag& dag, const CostCurves& curves, Seconds unit)
    : curves_(curves),
      num_computations_(static_cast<int>(dag.computations.size())),
      before_(model::neighbors_before<std::int64_t>(dag, units_of(unit))),
      after_(model::neighbors_after<std::int64_t>(dag, units_of(unit))),
      capacity_(3 * num_computations_ + dag.dependencies.size()),
      flow_(2 * num_computations_ + 2, 2 * num_computations_, 2 * num_computations_ + 1, make_arcs(dag, after_)) {}

std::int64_t CapacityDag::iteration_time(const std::vector<std::int64_t>& durations) {
  return model::longest_path(
      before_, [&](int i) { return durations[i]; }, earliest_end_);
}

CapacityDag::Capacity CapacityDag::capacity(int computation, std::int64_t duration) const {
  const CostCurve& curve = curves_.of(computation);
  return {duration == curve.slowest ? 0 : curve.step_cost_at(duration + 1),
          duration == curve.fastest ? kUnbounded : curve.step_cost_at(duration)};
}

void CapacityDag::set_capacity(int arc, Capacity capacity) {
  if (capacity_[arc] == capacity) return;
  capacity_[arc] = capacity;
  flow_.set_bounds(arc, capacity.lower, capacity.upper);
}

std::int64_t CapacityDag::annotate(const std::vector<std::int64_t>& durations) {
  const std::int64_t total = iteration_time(durations);
  model::latest_starts(
      after_, [&](int i) { return durations[i]; }, total, latest_start_);
  constexpr Capacity closed = {0, 0}, open = {0, kUnbounded};
  const int n = num_computations_;
  int link = 0;
  const int num_links = static_cast<int>(capacity_.size()) - 3 * n;
  for (int i = 0; i < n; ++i) {
    const std::int64_t earliest_start = earliest_end_[i] - durations[i];
    const bool critical = earliest_start == latest_start_[i];
    set_capacity(i, critical ? capacity(i, durations[i]) : closed);
    set_capacity(n + num_links + i, critical && earliest_start == 0 ? open : closed);
    set_capacity(2 * n + num_links + i, critical && earliest_end_[i] == total ? open : closed);
    for (const auto& next : after_.of(i)) {
      const bool tight = earliest_end_[i] + next.latency == latest_start_[next.computation];
      set_capacity(n + link++, tight ? open : closed);
    }
  }
  return total;
}

bool CapacityDag::find_cut(Changes& changes) {
  changes.speed_up.clear();
  changes.slow_down.clear();
  const graph::FlowOutcome outcome = flow_.solve();
  PERSEUS_CHECK(outcome != graph::FlowOutcome::infeasible, "the flow of the step before stays feasible");
  if (outcome == graph::FlowOutcome::unbounded) return false;
  // The source side is what the source still reaches. It holds no end of a closed arc, and the end of a computation
  // only where flow leaves it; flow above the lower bound would let the source reach the start as well. So what is cut
  // is critical, and what is cut backwards has a lower bound, that is, is not at its slowest.
  for (int i = 0; i < num_computations_; ++i) {
    const bool start = flow_.on_source_side(2 * i), end = flow_.on_source_side(2 * i + 1);
    if (start && !end) changes.speed_up.push_back(i);
    if (!start && end) changes.slow_down.push_back(i);
  }
  return true;
}

}  // namespace perseus::planner
