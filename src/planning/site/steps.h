// The curves of all jobs as steps, each with its urgency: which watts an allocation gives first.
//
// Problem: every objective becomes one rule, "give watts to the most urgent steps". For throughput and slowdown the
//          urgency of a step is its value per watt, on the concave hull of the job's points; for max-min it is minus
//          the rate at which the step begins, from point to point. Steps below the floor of a job come before all
//          others: those of jobs that accept less slowdown first, then in proportion to the floor.
// Input:   a valid site, which must outlive this object.
// Output:  per job vertices in ascending power, from 0 on; the urgency of the step from each vertex to the next never
//          rises.
// Errors:  none.
// Cost:    O(points), which are only read: urgencies are computed where an allocation looks, and only jobs whose points
//          are not concave have a list of vertices.
// Threads: const methods are safe concurrently.
#pragma once

#include <vector>

#include "planning/model/site_objective.h"

namespace perseus::site {

class Steps {
 public:
  Steps(const model::Site& site, model::SiteObjective objective);

  [[nodiscard]] int last(int job) const { return jobs_[job].last; }
  /// The vertex of the least rate that the job accepts.
  [[nodiscard]] int floor(int job) const { return jobs_[job].floor; }
  [[nodiscard]] double power_w(int job, int vertex) const { return point_of(job, vertex).power.value(); }
  /// Index into the job's points.
  [[nodiscard]] int point(int job, int vertex) const {
    const Job& j = jobs_[job];
    return j.hull < 0 || vertex < j.floor ? vertex : hulls_[j.hull + vertex - j.floor];
  }
  /// Of the step from `vertex` to the next.
  [[nodiscard]] double urgency(int job, int vertex) const {
    const Job& j = jobs_[job];
    const model::PowerPoint& from = point_of(job, vertex);
    if (vertex < j.floor) return urgency_below_ * (j.tier - from.rate / j.points[j.floor].rate);
    if (objective_ == model::SiteObjective::max_min) return -from.rate;
    return model::gain_per_w(objective_, j.weight, from, point_of(job, vertex + 1));
  }
  /// First step in [low, high) of urgency at most this one; `high` if there is none. O(log).
  [[nodiscard]] int first_at_most(int job, double urgency, int low, int high) const;

 private:
  static constexpr int kStride = 32;
  struct Job {
    const model::PowerPoint* points;
    double weight;
    int floor, last;
    int hull;  ///< where its vertices from the floor on are in hulls_; -1: they are its points
    int samples, samples_end;
    double tier;  ///< urgency of a step at rate 0, in urgency_below_
  };

  [[nodiscard]] const model::PowerPoint& point_of(int job, int vertex) const {
    return jobs_[job].points[point(job, vertex)];
  }
  [[nodiscard]] bool is_concave(const Job& job) const;
  void add_hull(Job& job);
  void raise_steps_below_floors();

  model::SiteObjective objective_;
  std::vector<Job> jobs_;
  std::vector<int> hulls_;
  std::vector<double> samples_;  ///< urgency of every kStride-th step from the floor on: these fit into a cache
  double urgency_below_ = 1;     ///< no less than the urgency of any step above a floor
};

/// Index of the first point that the job accepts: at its least rate, and above rate 0. The last one if there is none.
int floor_point_of(const model::SiteJob& job);

}  // namespace perseus::site
