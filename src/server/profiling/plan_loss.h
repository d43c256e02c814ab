// What a plan made from an estimate is worth on a profile that it was not made for.
//
// Problem: a plan is made from one profile and run on another.
// Input:   the DAG and frontier of the profile it runs on; the plan, with option indices of that DAG; the deadline.
//          Output, with t the plan's realized time there and T the later of t and the deadline: late_pct, how far t
//          is beyond the deadline (0 if it is not); loss_pct, how much more energy the iteration takes, blocked until
//          T, than that of the frontier's plan for the deadline; and strict_loss_pct, the same against the frontier's
//          plan for T: what one may do in the time that it took, so that being late never counts as saving.
// Errors:  none.
// Cost:    one realisation.
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
