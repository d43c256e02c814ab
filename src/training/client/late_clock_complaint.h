// Complains when many computations run before their clock has arrived, beyond the switch latency that plans assume.
//
// Input:   every clock-controlled computation; the number of late ones so far (see iteration_meter.h).
// Output:  the complaint Cause::late_clocks above 5 % of the last 200 or more, cleared below 2 %.
// Cost:    none.
// Threads: one.
#pragma once

#include <cstdint>

#include "planning/model/instruction.h"
#include "training/client/complaints.h"

namespace perseus::client {

class LateClockComplaint {
 public:
  void ran(model::Instruction instruction) { computations_ += model::is_constant_time(instruction) ? 0 : 1; }
  /// `late`: number of late computations since the start.
  void judge(std::int64_t late, Complaints& complaints);

 private:
  std::int64_t computations_ = 0;
  std::int64_t judged_computations_ = 0, judged_late_ = 0;
};

}  // namespace perseus::client
