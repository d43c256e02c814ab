#include "planning/planner/lower_bound.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "planning/planner/choices.h"
#include "planning/planner/exact.h"
#include "planning/planner/relaxation.h"

namespace perseus::planner {

LowerBoundResult compute_lower_bound(const model::ComputationDag& dag, const std::vector<Seconds>& certify_at,
                                     const std::function<void(double done)>& progress, bool exact) {
  const Kinds kinds = make_kinds(dag);
  LowerBoundResult result;
  if (!exact) result.price_step = price_step_of(dag, kinds);
  // With a step of prices only the whole curve tells which flow proves it where.
  std::optional<Relaxation> whole;
  if (!certify_at.empty() && result.price_step > Watts(0)) {
    whole.emplace(dag, kinds, result.price_step).lower_deadline(Seconds(0));
  }
  Relaxation relaxation(dag, kinds, result.price_step);
  result.certificates.resize(certify_at.size());
  std::vector<int> by_falling_deadline(certify_at.size());
  std::iota(by_falling_deadline.begin(), by_falling_deadline.end(), 0);
  std::ranges::sort(by_falling_deadline, std::greater{}, [&](int i) { return certify_at[i]; });
  std::size_t proven = 0;
  for (const int i : by_falling_deadline) {
    relaxation.lower_deadline(whole ? whole->proven_at(certify_at[i]) : certify_at[i]);
    result.certificates[i] = relaxation.certificate();
    result.certificates[i].deadline = certify_at[i];
    if (progress) progress(static_cast<double>(++proven) / static_cast<double>(certify_at.size()));
  }
  relaxation.lower_deadline(Seconds(0));
  result.bound = relaxation.curve();
  result.pivots = relaxation.pivots();
  return result;
}

}  // namespace perseus::planner
