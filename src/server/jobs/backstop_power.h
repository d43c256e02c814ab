// The power limit of a rank's GPU under a power budget, as a backstop: no clock of the plan reaches it.
//
// Model:   profiles have the mean power of a computation; a GPU's limiter judges shorter times, and GPUs differ. So the
//          limit is the greatest mean power, times the job's correction if that is above 1, times kBackstopMargin. A
//          budget has the correction in steps, so that ranks get another limit without a new plan for each percent.
// Input:   a job under a budget, its plan's point, the stage rank.
// Output:  for one accelerator of the rank: above each of its computations at the planned clock and at the budget's
//          ceiling, in whole watts. backstop_step(): the correction of a budget.
// Errors:  none.
// Cost:    O(computations of the pipeline).
// Threads: pure function.
// Source:  docs/decisions/0059-power-limit-as-backstop.md.
#pragma once

#include "base/units.h"
#include "server/jobs/job.h"

namespace perseus::jobs {

/// Not measured on GPUs; see the decision.
inline constexpr double kBackstopMargin = 1.25;
inline constexpr int kBackstopStep_pct = 5;

Watts backstop_power(const PowerBudget& budget, const CharacterizedPipeline& pipeline, int point, int stage_rank);
/// The same where every clock is at or below that ceiling, whatever the plan: from a fall of the budget on.
Watts backstop_power_at(const PowerBudget& budget, int ceiling_mhz, const CharacterizedPipeline& pipeline,
                        int stage_rank);
/// PowerBudget::draws_more_pct of a job with that correction: the next step above it. Below `last`, that of its present
/// plan, only if the correction is below the step by more than a change of corrections.
int backstop_step(double correction, int last_pct);

}  // namespace perseus::jobs
