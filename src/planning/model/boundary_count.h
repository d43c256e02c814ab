// Counts the boundaries between ranks over which a schedule sends (planning/model/transfer_latency.h numbers them).
//
// Input:   a valid schedule.
// Output:  N - 1 of N ranks, or N if the last rank and the first exchange results too (N > 2).
// Errors:  none.
// Cost:    O(actions).
// Threads: pure function.
#pragma once

#include "planning/model/schedule.h"

namespace perseus::model {

int boundary_count(const Schedule& schedule);

}  // namespace perseus::model
