// The generators behind make_schedule().
//
// Input:   a shape within the limits of the schedule's family.
// Output:  the actions of each rank.
// Source:  docs/schedules.md shows a picture of each schedule.
#pragma once

#include <vector>

#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::model::schedules {

using Ranks = std::vector<std::vector<Action>>;

Ranks gpipe(const ScheduleShape& shape);
Ranks one_forward_one_backward(const ScheduleShape& shape);
Ranks early_recompute(const ScheduleShape& shape);
Ranks interleaved(const ScheduleShape& shape);
Ranks zero_bubble(const ScheduleShape& shape);
Ranks zbv(const ScheduleShape& shape);
Ranks dualpipev(const ScheduleShape& shape);

/// The round of the interleaved schedules: microbatches that a rank runs through one chunk before it takes the next
/// chunk. At least the number of ranks if there are that many microbatches, whose number must be a multiple of it.
int microbatches_per_round(const ScheduleShape& shape);

}  // namespace perseus::model::schedules
