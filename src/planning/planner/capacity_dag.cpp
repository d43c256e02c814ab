#include "planning/planner/capacity_dag.h"

#include <algorithm>

#include "base/result.h"
#include "planning/planner/candidate_options.h"

namespace perseus::planner {
namespace {

constexpr std::int64_t kUnbounded = graph::BoundedMaxFlow::kUnbounded;

/// All arcs closed: computations, dependencies by `before`, from the source to each, from each to the sink.
std::vector<graph::BoundedMaxFlow::Arc> make_arcs(const model::ComputationDag& dag,
                                                  const std::vector<model::Dependency>& dependencies) {
  const int n = static_cast<int>(dag.computations.size());
  const int source = 2 * n, sink = 2 * n + 1;
  std::vector<graph::BoundedMaxFlow::Arc> arcs;
  arcs.reserve(3 * n + dependencies.size());
  for (int i = 0; i < n; ++i) arcs.push_back({2 * i, 2 * i + 1, 0, 0});
  for (const model::Dependency& d : dependencies) arcs.push_back({2 * d.before + 1, 2 * d.after, 0, 0});
  for (int i = 0; i < n; ++i) arcs.push_back({source, 2 * i, 0, 0});
  for (int i = 0; i < n; ++i) arcs.push_back({2 * i + 1, sink, 0, 0});
  return arcs;
}

std::vector<model::Dependency> by_before(std::vector<model::Dependency> dependencies) {
  std::ranges::stable_sort(dependencies, {}, &model::Dependency::before);
  return dependencies;
}

}  // namespace

CapacityDag::CapacityDag(const model::ComputationDag& dag, const CostCurves& curves, Seconds unit)
    : curves_(curves),
      num_computations_(static_cast<int>(dag.computations.size())),
      earliest_start_(num_computations_),
      latest_start_(num_computations_),
      capacity_(3 * num_computations_ + dag.dependencies.size()),
      flow_(2 * num_computations_ + 2, 2 * num_computations_, 2 * num_computations_ + 1,
            make_arcs(dag, by_before(dag.dependencies))) {
  for (const model::Dependency& d : by_before(dag.dependencies)) {
    links_.push_back({d.before, d.after, floor_to_units(d.latency, unit)});
  }
}

std::int64_t CapacityDag::iteration_time(const std::vector<std::int64_t>& durations) {
  std::ranges::fill(earliest_start_, 0);
  std::int64_t total = 0;
  auto link = links_.begin();
  for (int i = 0; i < num_computations_; ++i) {
    const std::int64_t finish = earliest_start_[i] + durations[i];
    total = std::max(total, finish);
    for (; link != links_.end() && link->before == i; ++link) {
      earliest_start_[link->after] = std::max(earliest_start_[link->after], finish + link->latency);
    }
  }
  for (int i = num_computations_ - 1; i >= 0; --i) {
    std::int64_t latest_finish = total;
    for (; link != links_.begin() && (link - 1)->before == i; --link) {
      latest_finish = std::min(latest_finish, latest_start_[(link - 1)->after] - (link - 1)->latency);
    }
    latest_start_[i] = latest_finish - durations[i];
  }
  return total;
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
  constexpr Capacity closed = {0, 0}, open = {0, kUnbounded};
  const int n = num_computations_;
  const int num_links = static_cast<int>(links_.size());
  for (int i = 0; i < n; ++i) {
    const bool critical = earliest_start_[i] == latest_start_[i];
    set_capacity(i, critical ? capacity(i, durations[i]) : closed);
    set_capacity(n + num_links + i, critical && earliest_start_[i] == 0 ? open : closed);
    set_capacity(2 * n + num_links + i, critical && earliest_start_[i] + durations[i] == total ? open : closed);
  }
  for (int l = 0; l < num_links; ++l) {
    const auto& [before, after, latency] = links_[l];
    const bool critical = earliest_start_[before] + durations[before] + latency == latest_start_[after];
    set_capacity(n + l, critical ? open : closed);
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
