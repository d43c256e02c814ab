// Evaluates a plan on a profile that it was not made for.
//
// Problem: a plan is made from one profile and run on another.
// Input:   the DAG and frontier of the profile that it runs on; the plan, with option indices of that DAG; the
//          deadline.
// Output:  with t the plan's realized time there and T the later of t and the deadline: late_pct, how far t exceeds
//          the deadline (0 if it does not); loss_pct, the iteration's additional energy, blocked until T, over that
//          of the frontier's plan for the deadline; strict_loss_pct, the same against the frontier's plan for T, so
//          that being late never counts as saving.
// Source:  paper eq. (1), section 3.1.
#pragma once

#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/planner/look_up.h"
#include "server/profiling/plan_uncertainty.h"

namespace perseus::testing {

struct PlanLoss {
  double loss_pct = 0;
  double strict_loss_pct = 0;
  double late_pct = 0;
};

inline PlanLoss plan_loss(const model::ComputationDag& truth, const model::Frontier& best, const model::Plan& plan,
                          Seconds deadline) {
  const auto [until, energy] = profiling::run_until(truth, plan, deadline);
  const Watts blocking = truth.total_blocking_power();
  const auto loss_pct = [&, energy = energy](Seconds time) {
    return 100 * (energy / (planner::look_up(best, time).effective_energy + blocking * time) - 1);
  };
  return {loss_pct(deadline), loss_pct(until), 100 * (until / deadline - 1)};
}

}  // namespace perseus::testing
