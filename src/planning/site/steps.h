// The curves of all jobs as steps, each with its urgency: which watts an allocation gives first.
//
// Problem: every objective becomes one rule, "give watts to the most urgent steps". For throughput and slowdown the
//          urgency of a step is its value per watt, on the concave hull of the job's points; for max-min it is minus
//          the rate at which the step begins, from point to point. Steps below the floor of a job come before all
//          others: those of jobs that accept less slowdown first, then in proportion to the floor.
// Input:   a valid site.
// Output:  per job vertices in ascending power; the urgency of the step from each vertex to the next never rises.
// Errors:  none.
// Cost:    O(points).
// Threads: const methods are safe concurrently.
#pragma once

#include <span>
#include <vector>

#include "planning/model/site_objective.h"

namespace perseus::site {

class Steps {
 public:
  Steps(const model::Site& site, model::SiteObjective objective);

  /// The vertices of job j are those from first(j) to last(j); step v leads from vertex v to v + 1.
  [[nodiscard]] int first(int job) const { return first_[job]; }
  [[nodiscard]] int last(int job) const { return first_[job + 1] - 1; }
  /// The vertex of the least rate that the job accepts.
  [[nodiscard]] int floor(int job) const { return floor_[job]; }
  [[nodiscard]] double power_w(int vertex) const { return power_w_[vertex]; }
  [[nodiscard]] double urgency(int step) const { return urgency_[step]; }
  /// Index into the job's points.
  [[nodiscard]] int point(int vertex) const { return point_[vertex]; }
  /// First step in [low, high) of urgency at most, or below, this one; `high` if there is none. O(log).
  [[nodiscard]] int first_at_most(double urgency, int low, int high) const;
  [[nodiscard]] int first_below(double urgency, int low, int high) const;

 private:
  void add_job(const model::SiteJob& job, model::SiteObjective objective);
  void add_hull(const model::SiteJob& job, model::SiteObjective objective, int floor_point);
  void raise_steps_below_floors(const model::Site& site);

  std::vector<int> first_{0}, floor_, point_;
  std::vector<double> power_w_, urgency_;
};

/// Index of the first point that the job accepts: at its least rate, and above rate 0. The last one if there is none.
int floor_point_of(const model::SiteJob& job);

}  // namespace perseus::site
