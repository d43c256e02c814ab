// How much more a job draws than its profile says, from the energies that its ranks report.
//
// Problem: profiles err by a few percent, so a limit that planned powers keep would be exceeded by what GPUs draw. A
//          correction that follows every report would change plans all the time, and one that believes anything could
//          be talked into exceeding the limit.
// Method:  energy and mean power of an iteration as measured (EnergyMeasured: means over whole iterations under one
//          plan, without stragglers) over the planned ones, whichever is more. Power, since an iteration that takes
//          less time than planned draws more at the same energy. Energy, since one that waits for its data draws less
//          power, and its full power again once the data comes. A correction rises at once, so that no job counts less
//          than it reports, and falls where it is more than kCorrectionDeadBand above what is measured.
// Input:   a job with its log's grants and measurements; the frontiers of its plan; the greatest correction that is
//          believed.
// Output:  the factor, within kLeastCorrection and `most`; 1 where measured is less than kLeastCorrection of planned:
//          the profile is of another job then, which frees no watts. Without kLeastMeasured under the plan in force,
//          the last one of the log, also of a job that was released from its grant.
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

double drawn_over_planned(const Job& job, const Frontiers& frontiers, double most = kMostCorrection);

}  // namespace perseus::jobs
