#include "planning/checker/clock_changes.h"

#include <algorithm>

namespace perseus::checker {

std::vector<ClockChanges> count_clock_changes(const model::ComputationDag& dag, const model::Plan& plan,
                                              const PlanRun& run) {
  PERSEUS_CHECK(plan_fits(dag, plan).ok(), "the plan does not fit the pipeline");
  std::vector<ClockChanges> changes;
  for (const std::vector<int>& order : dag.rank_order) {
    ClockChanges of_rank{0, run.makespan};
    Megahertz first, now;  // 0: none yet
    Seconds last_end, first_request, last_request;
    const auto follow = [&](Megahertz clock) {
      if (clock == now) return;
      if (of_rank.count++ == 0) {
        first_request = last_end;
      } else {
        of_rank.shortest_dwell = std::min(of_rank.shortest_dwell, last_end - last_request);
      }
      last_request = last_end;
      now = clock;
    };
    for (const int computation : order) {
      const Megahertz clock = dag.type_of(computation).options[plan[computation]].clock;
      if (clock == Megahertz(0)) continue;
      if (now == Megahertz(0)) first = now = clock;
      follow(clock);
      last_end = run.end[computation];
    }
    follow(first);
    if (of_rank.count > 0)
      of_rank.shortest_dwell = std::min(of_rank.shortest_dwell, first_request + run.makespan - last_request);
    changes.push_back(of_rank);
  }
  return changes;
}

}  // namespace perseus::checker
