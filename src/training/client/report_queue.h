// Measured iterations of one rank until they are reported, in groups that the server takes as one report.
//
// Input:   iterations in order.
// Output:  a whole profiling window; or consecutive iterations of one plan version. Half a window that another plan has
//          ended is dropped.
// Errors:  none; while the server is unreachable the newest 1000 iterations are kept.
// Cost:    linear in the iterations returned.
// Threads: none: the session guards it.
#pragma once

#include <deque>
#include <vector>

#include "training/client/messages.h"

namespace perseus::client {

class ReportQueue {
 public:
  void add(MeasuredIteration iteration);
  /// The next report; empty: none yet. `all`: also iterations of a plan version of which more may follow.
  std::vector<MeasuredIteration> next(bool all);
  void clear() { iterations_.clear(); }

 private:
  std::deque<MeasuredIteration> iterations_;
};

}  // namespace perseus::client
