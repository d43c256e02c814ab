// Ways to run a job below the power of its slowest plan: all its ranks wait at the begin of each iteration.
//
// Problem: a paced rank whose server is silent goes on with its last period, but at the clock of its ceiling. A limit
//          must hold then too, and with every mixture of ranks at their plan and at the ceiling.
// Model:   an iteration that takes longer than its computations adds the blocking power of all accelerators for the
//          rest (power_with_waits()). Energies above blocking add up over computations, so
//          an iteration of any mixture takes at most what the slowest plan takes, and for each computation what the
//          ceiling takes more. Powers here contain that.
// Input:   the pipelines of a job; their slowest plans; the least part of its full speed that waits may slow
//          it to; the ceiling of ranks that keep a lower one (site_ahead.h).
// Output:  the clock at which that surplus is least, among those at or below which every computation was measured;
//          ascending times beyond the slowest plan, at the rates of site::paced_rates(), down to the least rate, and
//          not beyond kLongestWait_s: a host that runs ahead of its device begins to wait early.
// Errors:  none; no times where the least rate is above that of the slowest plan.
// Cost:    O(computations + clocks x types x options).
// Threads: pure functions.
// Source:  docs/decisions/0057.
#pragma once

#include <vector>

#include "server/policies/policy_target.h"

namespace perseus::policies {

/// Clients wait no longer in one iteration (docs/client.md).
inline constexpr Seconds kLongestWait_s{10};

struct PacedRuns {
  int ceiling_mhz = 0;              ///< of a rank without a valid plan
  std::vector<PowerAtTime> powers;  ///< fastest first
  struct AtCeiling {
    int clock_mhz = 0;
    Joules surplus;
  };
  std::vector<AtCeiling> surplus;  ///< of an iteration at each clock of a computation, lowest clock first
  Watts waiting;                   ///< of all accelerators

  /// The period with which a job at that ceiling draws no more than that one of `powers` at its own ceiling; at most
  /// the longest of them.
  [[nodiscard]] Seconds period_at(const PowerAtTime& run, int at_mhz) const;
};

PacedRuns paced_runs(const std::vector<PolicyScope>& groups, const PowerAtTime& slowest, double least_rate);

}  // namespace perseus::policies
