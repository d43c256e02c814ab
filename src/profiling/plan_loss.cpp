#include "profiling/plan_loss.h"

#include <algorithm>

#include "planner/look_up.h"
#include "planner/realise.h"

namespace perseus {

PlanLoss plan_loss(const ComputationDag& truth, const Frontier& best, const Plan& plan, Seconds deadline) {
  const Realiser::Outcome outcome = Realiser(truth).realise(plan);
  const Seconds until = std::max(outcome.time, deadline);
  const Watts blocking = truth.total_blocking_power();
  const Joules energy = outcome.effective_energy + blocking * until;
  const auto loss_pct = [&](Seconds time) {
    return 100 * (energy / (look_up(best, time).effective_energy + blocking * time) - 1);
  };
  return {loss_pct(deadline), loss_pct(until), 100 * (until / deadline - 1)};
}

}  // namespace perseus
