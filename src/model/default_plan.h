// The plan of a pipeline that waits for no other one: the slowest plan that is not slower than maximum clock.
//
// T_max is the iteration time with everything at maximum clock. Where a profile has steps (a GPU that throttles is
// faster at a lower clock), T_min, the least time of any plan, is a little less than T_max; plans between them cost
// energy and gain time that maximum clock never had. So the default deadline is T_max, stretched by the slowdown that
// the operator tolerates. The published method keeps T_min: DefaultRule::fastest.
// Input:   a frontier with at least one point; T_max.
// Output:  the deadline; T_min of the frontier where no point is that fast. The point: its index.
// Cost:    O(log points).
// Threads: pure.
// Source:  docs/decisions/0040-no-slower-than-maximum-clock.md; paper section 3.1.
#pragma once

#include <vector>

#include "base/units.h"
#include "model/frontier.h"

namespace perseus {

struct DefaultRule {
  double slowdown = 0;   ///< tolerated, relative: 0.003 is 0.3 %
  bool fastest = false;  ///< start from T_min, as the published method does, instead of T_max
};

/// T of T'/T: the iteration time without stragglers and without the tolerance.
Seconds time_without_straggler(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});
/// The slowest point that takes no longer than that time, stretched by the tolerance.
int default_point(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});

/// What a tolerated slowdown saves beyond the default plan without one.
struct ToleranceGain {
  double slowdown = 0;
  int point = 0;
};
/// The points of some usual tolerances (0.1, 0.3, 1 and 3 %); those that change nothing are left out.
std::vector<ToleranceGain> usual_tolerances(const Frontier& frontier, Seconds t_max, const DefaultRule& rule = {});

}  // namespace perseus
