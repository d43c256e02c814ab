// Checks dual certificates: lower bounds on energy that hold whoever found them and however.
//
// Problem: is a claimed lower bound on effective energy a bound, and is it the best one? Weak duality (stated in
// planning/model/certificate.h, proven at certify()) makes every certificate a straight line below the energy of all
// plans; strong duality makes it touch the exact curve at its deadline. Input: a valid ComputationDag, W for flows.
// Output: the line, or findings as text. Errors: certify() names the computation or dependency, the value and what was
// allowed. Cost: O(options + computations + dependencies) per certificate. Threads: any. Source: Phillips & Dessouky
// 1977; paper appendix on the relaxation.
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
  Watts fall;  ///< F, >= 0: what one more second may save
  [[nodiscard]] Joules at(Seconds deadline) const { return at_zero - fall * deadline; }
};

/// The line that a certificate proves. A source or sink that is negative by no more than rounding (1e-9 of the largest
/// flow) is accepted and paid for in `fall`, so that the line is proven, not nearly proven.
Result<CertifiedLine> certify(const model::ComputationDag& dag, const model::BoundCertificate& certificate);

/// Least effective energy of all plans, however slow: sum of the least effective energy of each computation.
Joules least_effective_energy(const model::ComputationDag& dag);

struct BoundCheck {
  std::vector<std::string> findings;  ///< empty: all holds
  int certificates = 0;               ///< how many were valid
  double worst_mismatch = 0;  ///< largest |claimed - certified| at a certificate's deadline, in parts of the same
};

/// Is `bound` a curve that falls and is convex, that lies on no certified line's lower side, and that meets each
/// certificate's line at its deadline? Within `tolerance` of the energy of the whole iteration there, and within
/// tolerance / 1000 of the deadline. With one certificate inside every piece of the curve, it is then proven
/// everywhere.
BoundCheck check_bound(const model::ComputationDag& dag, const model::LowerBound& bound,
                       std::span<const model::BoundCertificate> certificates, double tolerance = 1e-6);

/// One deadline inside every piece of the curve (its middle): where to ask for certificates.
std::vector<Seconds> deadlines_to_certify(const model::LowerBound& bound);

}  // namespace perseus::checker
