// How much more a job draws than its profile says, from the energies that its ranks report.
//
// Problem: profiles err by a few percent, so a limit that planned powers keep would be exceeded by what GPUs draw. A
//          correction that follows every report would change plans all the time, and one that believes anything could
//          be talked into exceeding the limit.
// Method:  the energy of an iteration as measured (EnergyMeasured: the median over whole iterations under one plan,
//          without stragglers) over the planned one. The last correction in the log stays until the two differ by more
//          than kCorrectionDeadBand. Energies, not powers: an iteration that waits for its data takes as much energy or
//          more, but less power, and draws its full power again once the data comes.
// Input:   a job with its log's grants and measurements; the frontiers of its plan.
// Output:  the factor, within kLeastCorrection and kMostCorrection; without kLeastMeasured under the plan in force,
//          the last one of the log.
// Errors:  none.
// Cost:    that of iteration_cost().
// Threads: pure function.
// Source:  docs/decisions/0053; beyond the paper.
#pragma once

#include <cstdint>

#include "server/jobs/deployment.h"

namespace perseus::jobs {

inline constexpr double kLeastCorrection = 0.8, kMostCorrection = 1.25, kCorrectionDeadBand = 0.01;
inline constexpr std::int64_t kLeastMeasured = 4;

double drawn_over_planned(const Job& job, const Frontiers& frontiers);

}  // namespace perseus::jobs
