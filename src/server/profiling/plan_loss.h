// Evaluates a plan on a profile that it was not made for.
//
// Problem: a plan is made from one profile and run on another.
// Input:   the DAG and frontier of the profile that it runs on; the plan, with option indices of that DAG; the
//          deadline.
// Output:  with t the plan's realized time there and T the later of t and the deadline: late_pct, how far t exceeds
//          the deadline (0 if it does not); loss_pct, the iteration's additional energy, blocked until T, over that
//          of the frontier's plan for the deadline; strict_loss_pct, the same against the frontier's plan for T, so
//          that being late never counts as saving.
// Errors:  none.
// Cost:    one realization.
// Threads: pure.
// Source:  paper eq. (1), section 3.1.
#pragma once

#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::profiling {

struct PlanLoss {
  double loss_pct = 0;
  double strict_loss_pct = 0;
  double late_pct = 0;
};

PlanLoss plan_loss(const model::ComputationDag& truth, const model::Frontier& best, const model::Plan& plan,
                   Seconds deadline);

}  // namespace perseus::profiling
