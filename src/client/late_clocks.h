// Complains when many computations run before their clock has arrived.
//
// A mixed computation is one during which the clock changed (see iteration_meter.h): its clock was requested too late.
// A few are normal; more than 5 % mean that the plan is not what runs.
//
// Input:   every clock-controlled computation; how many of all were mixed so far.
// Output:  the complaint Cause::late_clocks above 5 % of the last 500 or more, cleared below 2 %.
// Errors:  none.
// Cost:    none.
// Threads: one.
#pragma once

#include <cstdint>

#include "client/complaints.h"
#include "model/instruction.h"

namespace perseus::client {

class LateClocks {
 public:
  void ran(Instruction instruction) { computations_ += is_constant_time(instruction) ? 0 : 1; }
  /// `mixed`: computations since the start.
  void judge(std::int64_t mixed, Complaints& complaints);

 private:
  std::int64_t computations_ = 0;
  std::int64_t judged_computations_ = 0, judged_mixed_ = 0;
};

}  // namespace perseus::client
