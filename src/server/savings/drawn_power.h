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
//          A job that reports less than planned counts as planned: only a meter frees watts.
// Input:   a job with its log's grants and measurements; the frontiers of its plan; its power at maximum clock by its
//          profile; what is believed of that.
// Output:  the factor, at least 1 where that power is believed, and such that the product is believed. Without
//          kLeastMeasured under the plan in force it follows the last one of the log, also of a job that was released
//          from its grant.
// Errors:  none.
// Cost:    that of iteration_cost().
// Threads: pure function.
// Source:  docs/decisions/0053; beyond the paper.
#pragma once

#include <cstdint>

#include "server/policies/deployment.h"

namespace perseus::savings {

inline constexpr double kMostCorrection = 1.25, kCorrectionDeadBand = 0.01;
/// A job that a token of a job registered counts at maximum clock as this part of its accelerators' power at least.
inline constexpr double kLeastOfAccelerators = 0.5;
inline constexpr std::int64_t kLeastMeasured = 4;

/// What a job may count as at maximum clock.
struct BelievedPower {
  Watts least, most;
  /// Of a factor on `all_max`: what counts is at least that power, if it is believed.
  [[nodiscard]] double factor(double wanted, Watts all_max) const;
};
/// `bounded`: a token of a job registered it; `all_max`: by its profile; `accelerators`: by the site's document.
BelievedPower believed_power(bool bounded, Watts all_max, Watts accelerators);

double drawn_over_planned(const jobs::Job& job, const policies::Frontiers& frontiers, Watts all_max,
                          const BelievedPower& believed);

}  // namespace perseus::savings
