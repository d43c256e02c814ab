// The limits and times of jobs and of their planning.
//
// Input:   of an operator, see docs/serve.md.
#pragma once

#include <string>

#include "server/jobs/identity.h"

namespace perseus::plans {

/// What a server wants of its process; here: nothing.
class ServerHost {
 public:
  virtual ~ServerHost() = default;
  /// Receives lines on jobs, see server/savings/job_lines.h.
  virtual void log(const std::string& /*line*/) {}
  virtual void warn(const std::string& /*line*/) {}
  /// False: another server may have taken over.
  virtual bool may_renew() { return true; }
  /// The id of a job is made from it.
  virtual std::string random_id() { return jobs::random_hex_id(); }
};
inline ServerHost* no_host() {
  static ServerHost none;
  return &none;
}

/// What Service::set_limits() replaces.
struct PlanningLimits {
  double idle_expiry_s = 7 * 24 * 3600;      ///< jobs without requests for this long expire
  int max_ranks = 1 << 17;                   ///< of a job
  double profiling_tolerance_pct = 0.15;     ///< allowed expected energy loss of the plan of an online profile
  int profiling_iterations = 60;             ///< profiling ends after this many, with what it has
  double profiling_slowdown_pct = 5;         ///< mean over a job's iterations while it is profiled
  double profiling_worst_slowdown_pct = 30;  ///< of a single iteration
  double slowdown = 0;                       ///< tolerated by jobs without a max_slowdown policy: 0.003 is 0.3 %
  double planning_budget_s = 600;            ///< planner seconds of a pipeline; after them, its quick frontier stays
  double planner_s_per_owner = 1800;         ///< in an hour; beyond it, all other owners take precedence
  bool operator==(const PlanningLimits&) const = default;
};

struct PlanningOptions : PlanningLimits {
  int margin_iterations = 2;          ///< a new plan applies after this many more iterations
  int max_computations = 1 << 17;     ///< of a pipeline's iteration
  double rank_lease_s = 60;           ///< another process may take over a rank that has been silent for this long
  double profiling_window_s = 600;    ///< a profiling window ends after this time without all reports
  double switch_latency_s = 0;        ///< planned with where neither profile, job nor ranks give one
  double latency_wait_s = 5;          ///< delay of the first plan, for ranks to report their switch latency
  int plan_deadlines = 1000;          ///< see PlannerOptions
  int planners = 1;                   ///< plannings of a kind submitted to the executor at a time
  double refinement_slice_s = 30;     ///< planner seconds before refinements of others have their turn
  double quick_above_s = 3;           ///< pipelines estimated to take more planner seconds get a quick frontier first
  double maximum_clock_after_s = 20;  ///< for a rank whose client requests its plan only once; see WaitForPlan
  ServerHost* host = no_host();       ///< outlives the server
};

}  // namespace perseus::plans
