// Divides watts among the jobs of a site such that every limit holds and the objective is greatest.
//
// Problem: each job is in one domain, so the limits are nested: giving watts to the most urgent steps first, domain by
//          domain from the leaves to the root, is optimal. A domain whose jobs want more than its limit gets the least
//          urgency (its price) at which the steps above it fit; what is left goes to the steps at that price in the
//          order of the jobs. Then each job takes the point below its watts, and the remaining watts go to the jobs
//          that gain most per watt. max-min is discrete from the start and leaves the remaining watts.
// Input:   a valid site, which must outlive this object; a limit per domain, in W of the accelerators.
// Output:  an allocation within every limit. Where floors exceed a limit it goes below them (steps.h) and says by how
//          many watts; where even waiting jobs exceed a limit, all jobs of that domain wait, and neither it nor a
//          domain inside has a price. The bound is that of the continuous problem, for max-min of the least rate alone.
// Errors:  none; a number of limits other than that of domains is a programming error.
// Cost:    O(levels x jobs x log steps) expected. A second call computes the domains again whose limits changed, and
//          those around them (docs/measurements/site.md).
// Threads: one.
// Source:  A. Federgruen, H. Groenevelt, The greedy procedure for resource allocation problems, 1986.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planning/model/site.h"
#include "planning/site/steps.h"

namespace perseus::site {

class Allocator {
 public:
  Allocator(const model::Site& site, model::SiteObjective objective);

  model::Allocation allocate(std::span<const Watts> limits);

 private:
  /// The steps that a job gets: those before `vertex`, and `extra_w` watts of the next.
  struct Share {
    int vertex = 0;
    double extra_w = 0;
  };
  /// The k-th job of a domain, whose steps from `low` to `high` are not decided yet.
  struct Open {
    int job, low, high;
    double low_w;  ///< power at `low`; of ties at `high`
  };

  [[nodiscard]] double power_w(int job, const Share& share) const {
    return steps_.power_w(job, share.vertex) + share.extra_w;
  }
  [[nodiscard]] double power_w(int job, const Share& upper, int vertex) const;
  void settle(int domain, double limit_w);
  void divide(int domain, double limit_w, std::span<const Share> upper, std::span<Share> shares);
  void give_ties(const int* jobs, const std::vector<Open>& ties, double left_w, std::span<const Share> upper,
                 std::span<Share> shares);
  static std::int64_t steps_in(const std::vector<Open>& open);
  double drawn_price(const int* jobs, const std::vector<Open>& open);
  [[nodiscard]] double value(const std::vector<int>& chosen) const;
  [[nodiscard]] double bound_of(std::span<const Watts> limits, const model::Allocation& allocation) const;

  const model::Site& site_;
  model::SiteObjective objective_;
  Steps steps_;
  std::vector<int> order_;                ///< jobs by domain in depth-first order: those of a domain are contiguous
  std::vector<int> begin_, end_, depth_;  ///< per domain: its jobs in that order, with those of its children
  std::vector<std::vector<Share>>
      level_;                     ///< per depth and job in that order: what the limits from there inwards leave
  std::vector<double> limits_w_;  ///< of the last call
  std::vector<double> price_, missing_w_;  ///< a price of infinity: all jobs wait
  std::vector<double> floors_w_;           ///< of the jobs in that order
  double last_price_ = 0;                  ///< of the domain divided last: others often have a similar one
  std::uint64_t draws_ = 0;
};

}  // namespace perseus::site
