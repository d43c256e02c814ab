// A method's saving by source, in percent of the energy of the same work with all computations at maximum clock.
//
// Intrinsic: the saving of its fastest plans, whatever the stragglers do. Extrinsic: the additional saving from
// slowing down for stragglers.
//
// Input:   energy of the same work (an iteration) at maximum clock, with the fastest plans only, and with all plans.
// Source:  paper section 6.3, figure 7.
#pragma once

#include "base/units.h"

namespace perseus::emulator {

struct Savings {
  double intrinsic_pct = 0;
  double extrinsic_pct = 0;
  double total_pct = 0;
};

inline Savings savings_of(Joules all_max, Joules fastest_plans, Joules all_plans) {
  return {100 * ((all_max - fastest_plans) / all_max), 100 * ((fastest_plans - all_plans) / all_max),
          100 * ((all_max - all_plans) / all_max)};
}

}  // namespace perseus::emulator
