#include "planning/checker/clock_changes.h"

#include <algorithm>

namespace perseus::checker {

std::vector<ClockChanges> count_clock_changes(const model::ComputationDag& dag, const model::Plan& plan,
                                              const PlanRun& run) {
  PERSEUS_CHECK(plan_fits(dag, plan).ok(), "the plan does not fit the pipeline");
  std::vector<ClockChanges> changes;
  for (const std::vector<int>& order : dag.rank_order) {
    std::vector<int> controlled;
    const auto clock_of = [&](int computation) { return dag.type_of(computation).options[plan[computation]].clock; };
    std::ranges::copy_if(order, std::back_inserter(controlled), [&](int c) { return clock_of(c) != Megahertz(0); });

    std::vector<Seconds> requests;
    for (std::size_t i = 0; i < controlled.size(); ++i) {
      const int following = controlled[(i + 1) % controlled.size()];
      if (clock_of(following) != clock_of(controlled[i])) requests.push_back(run.end[controlled[i]]);
    }
    ClockChanges of_rank{static_cast<int>(requests.size()), run.makespan};
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const bool is_last = i + 1 == requests.size();
      const Seconds next = is_last ? requests.front() + run.makespan : requests[i + 1];
      of_rank.shortest_dwell = std::min(of_rank.shortest_dwell, next - requests[i]);
    }
    changes.push_back(of_rank);
  }
  return changes;
}

}  // namespace perseus::checker
