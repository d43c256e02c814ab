// Checks dual certificates: lower bounds on energy that hold independent of how they were found.
//
// Problem: is a claimed lower bound on effective energy a bound, and is it the best one? Weak duality (stated in
//          planning/model/certificate.h, proven at certify()) makes every certificate a straight line below the energy
//          of all plans; strong duality makes it touch the exact curve at its deadline.
// Input:   a valid ComputationDag, W for flows.
// Output:  the line, or findings as text.
// Errors:  certify() names the computation or dependency, the value and what is allowed.
// Cost:    O(options + computations + dependencies) per certificate.
// Threads: safe concurrently.
// Source:  Phillips & Dessouky 1977; paper appendix on the relaxation.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/certificate.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::checker {

/// For every T: no plan with iteration time <= T has less effective energy than at(T).
struct CertifiedLine {
  Joules at_zero;
  Watts fall;  ///< F, >= 0: the most that one more second can save
  [[nodiscard]] Joules at(Seconds deadline) const { return at_zero - fall * deadline; }
};

/// The line that a certificate proves. It accepts a source or sink that is negative by no more than rounding (1e-9 of
/// the largest flow) and adds its cost to `fall`, so that the proof stays exact.
Result<CertifiedLine> certify(const model::ComputationDag& dag, const model::BoundCertificate& certificate);

/// Least effective energy of all plans, however slow: sum of the least effective energy of each computation.
Joules least_effective_energy(const model::ComputationDag& dag);

struct BoundCheck {
  std::vector<std::string> findings;  ///< empty: all holds
  int certificates = 0;               ///< how many were valid
  double worst_mismatch = 0;  ///< largest |claimed - certified| at a certificate's deadline, in parts of the same
};

/// Checks that `bound` is a falling, convex curve, nowhere below a certified line, that meets each certificate's line
/// at its deadline: within `tolerance` of the energy of the whole iteration there, and within tolerance / 1000 of the
/// deadline. One certificate inside every piece of the curve then proves the whole curve.
/// `may_be_lower`: only that it is not above each certificate's line at its deadline.
BoundCheck check_bound(const model::ComputationDag& dag, const model::LowerBound& bound,
                       std::span<const model::BoundCertificate> certificates, double tolerance = 1e-6,
                       bool may_be_lower = false);

/// One deadline inside every piece of the curve (its middle), at which certificates prove most.
std::vector<Seconds> deadlines_to_certify(const model::LowerBound& bound);

}  // namespace perseus::checker
