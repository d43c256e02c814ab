#include "server/profiling/plan_loss.h"

#include <algorithm>

#include "planning/planner/look_up.h"
#include "planning/planner/realize.h"

namespace perseus::profiling {

PlanLoss plan_loss(const model::ComputationDag& truth, const model::Frontier& best, const model::Plan& plan,
                   Seconds deadline) {
  const planner::Realizer::Outcome outcome = planner::Realizer(truth).realize(plan);
  const Seconds until = std::max(outcome.time, deadline);
  const Watts blocking = truth.total_blocking_power();
  const Joules energy = outcome.effective_energy + blocking * until;
  const auto loss_pct = [&](Seconds time) {
    return 100 * (energy / (planner::look_up(best, time).effective_energy + blocking * time) - 1);
  };
  return {loss_pct(deadline), loss_pct(until), 100 * (until / deadline - 1)};
}

}  // namespace perseus::profiling
