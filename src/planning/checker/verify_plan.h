// Verifies a whole frontier against the DAG of its pipeline, with code that is independent of the planner.
//
// Problem: are the claimed times, energies, bounds and ends of a frontier true? planning/checker/plan_run.h recomputes
//          everything from the measurements; certificates, if given, check the bounds. Of `clock_limit_cost`, only
//          limits are known: the plans without clock limits that it compares with are not part of the frontier.
// Input:   a valid ComputationDag (plans refer to its order of options), a frontier of at least one point.
// Output:  findings in the order of points (none: verified), and summary numbers.
// Errors:  none, every problem is a finding.
// Cost:    one simulation per point.
// Threads: safe concurrently.
// Source:  paper sections 3.1, 4.1, eq. (1).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "planning/model/certificate.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::checker {

struct VerifyOptions {
  double tolerance = 1e-9;          ///< relative, of times and energies
  double bound_tolerance = 1e-6;    ///< relative to the iteration's energy, of bounds against certificates
  bool bound_may_be_lower = false;  ///< than its certificates prove: of another, coarser method
  Seconds switch_latency;           ///< included in the claimed times and energies
  /// False: the plans were made without switch latency and minimum dwell, so these cost nothing.
  bool has_clock_limits = true;
  /// The frontier claims to reach both ends: the least makespan of all plans and the least effective energy of all
  /// plans. False for baselines and for plans with a minimum dwell or switch latency.
  bool reaches_both_ends = true;
  std::function<void(double done)> progress = {};  ///< called with 0..1, once per point
};

/// One claim that does not hold.
struct Finding {
  int point = -1;        ///< index of the frontier point; -1: about the frontier or the bound as a whole
  std::string quantity;  ///< "time_s", "energy_j", "effective_energy_j", "bound_j", "plan", "order", "bound", ...
  double claimed = 0;
  double recomputed = 0;
  std::string message;  ///< the finding as one sentence, numbers included
};

struct Verification {
  std::vector<Finding> findings;
  int points = 0;
  int certificates = 0;        ///< number of valid certificates
  Seconds fastest_time;        ///< recomputed, of the last point
  Seconds slowest_time;        ///< recomputed, of point 0
  Seconds least_makespan;      ///< of any plan: every computation at its fastest option
  Seconds max_clock_makespan;  ///< every computation at its highest clock
  double worst_error = 0;      ///< largest relative difference of a claimed time or energy from the recomputed one
  double worst_mismatch = 0;   ///< largest relative difference of the bound curve from a certificate
  double mean_gap_pct = 0;     ///< over points
  double max_gap_pct = 0;
  [[nodiscard]] bool ok() const { return findings.empty(); }
};

/// Checks the frontier; skips the bound if `frontier.bound` has no vertices. Certificates are optional
/// (deadlines_to_certify() returns the deadlines at which they prove most).
Verification verify_frontier(const model::ComputationDag& dag, const model::Frontier& frontier,
                             std::span<const model::BoundCertificate> certificates = {},
                             const VerifyOptions& options = {});

}  // namespace perseus::checker
