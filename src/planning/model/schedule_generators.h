// The generators behind make_schedule(), one file each. They are given a shape within the limits of their family and
// return the ranks' actions; ../docs/schedules.md shows each as a picture.
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

/// Microbatches that a rank runs through one chunk before it turns to the next: the interleaved schedules' round. At
/// least the number of ranks where there are that many; the microbatches must be a multiple of it.
int microbatches_per_round(const ScheduleShape& shape);

}  // namespace perseus::model::schedules
