#include "planning/planner/lower_bound.h"

#include <algorithm>
#include <numeric>

#include "planning/planner/choices.h"
#include "planning/planner/exact.h"
#include "planning/planner/relaxation.h"

namespace perseus::planner {

LowerBoundResult compute_lower_bound(const model::ComputationDag& dag, const std::vector<Seconds>& certify_at,
                                     const std::function<void(double done)>& progress) {
  const Kinds kinds = make_kinds(dag);
  Relaxation relaxation(dag, kinds);
  relaxation.lower_deadline(Seconds(0));
  LowerBoundResult result{relaxation.curve(), {}, relaxation.pivots()};
  result.certificates.resize(certify_at.size());
  std::vector<int> by_falling_deadline(certify_at.size());
  std::iota(by_falling_deadline.begin(), by_falling_deadline.end(), 0);
  std::ranges::sort(by_falling_deadline, std::greater{}, [&](int i) { return certify_at[i]; });
  std::size_t proven = 0;
  Relaxation again(dag, kinds);
  for (const int i : by_falling_deadline) {
    again.lower_deadline(relaxation.proven_at(certify_at[i]));
    result.certificates[i] = again.certificate();
    result.certificates[i].deadline = certify_at[i];
    if (progress) progress(static_cast<double>(++proven) / static_cast<double>(certify_at.size()));
  }
  return result;
}

}  // namespace perseus::planner
