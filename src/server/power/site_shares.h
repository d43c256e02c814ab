// Divides the watts of a site among its running jobs: the share of each job that can keep one.
//
// Problem: what a job can draw changes with its frontier, its stragglers and its policies; jobs without a frontier, or
//          whose ranks cannot keep a budget, draw what they draw.
// Input:   the domains of a site, a limit of its accelerators per domain, the jobs.
// Output:  per job its share: the power of a plan; its present grant where all grants fit and lose at most
//          kSmallLoss of what is possible; its power at maximum clock, which needs no grant, where no limit around it
//          can bind even if all jobs draw that (those that have a grant: kReleaseRoom more). Jobs without choices keep
//          what they count as. Per domain the price of a watt and the watts missing for the least rates and for those
//          jobs, and the guard that its window needs (planning/site/window_guard.h): 0 W where the limit does not bind
//          without it.
// Units:   W as drawn, except in choices.
// Errors:  none.
// Cost:    that of planning/site/allocate.h; with windows, of a few allocations, and an iteration for each plan that is
//          considered for the first time (job_swing.h).
// Threads: pure function.
// Source:  docs/decisions/0052.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planning/model/site.h"
#include "planning/model/site_objective.h"
#include "server/policies/deployment.h"
#include "server/power/job_swing.h"

namespace perseus::power {

inline constexpr double kSmallLoss = 0.003;
/// A job loses its grant only where the limits leave so much more than its power at maximum clock: what ranks measure
/// varies, and each change of a grant is a new plan.
inline constexpr double kReleaseRoom = 0.02;

struct PoweredJob {
  std::string id;
  int domain = 0;
  double weight = 1, least_rate = 0;
  std::shared_ptr<const policies::PowerChoices> choices;  ///< null: it keeps what it counts as; powers as planned
  double correction = 1;                                  ///< drawn power over planned power
  Watts counted;                                          ///< see planning/site/grant_order.h; as drawn
  Watts granted;                                          ///< the same
  bool has_grant = false;
  std::shared_ptr<const JobSwing> swing = nullptr;  ///< also of jobs without choices; null: it has no frontier
  [[nodiscard]] Watts all_max() const { return choices->all_max * correction; }
};

struct PoweredSite {
  std::vector<model::PowerDomain> domains;
  std::vector<Watts> limits;  ///< below 0 W: watts are missing even without the jobs
  model::SiteObjective objective = model::SiteObjective::slowdown;
  std::vector<PoweredJob> jobs;
  /// Per domain: over which its meter averages; nothing: over minutes, without a guard. Empty: no domain has one.
  std::vector<std::optional<Seconds>> windows = {};
};

/// Jobs of a tier that run below their least rate, since watts are missing in a domain.
struct TierGives {
  double least_rate = 0;
  int jobs = 0;
};

struct SiteShares {
  std::vector<Watts> wanted;                  ///< per job
  std::vector<double> price;                  ///< per domain
  std::vector<Watts> missing;                 ///< per domain
  std::vector<std::vector<TierGives>> gives;  ///< per domain, where watts are missing
  bool kept = false;                          ///< the grants stay as they are
  std::vector<Watts> guard = {};              ///< per domain; empty: no domain with a limit has a window
};

SiteShares shares_of(const PoweredSite& site);

/// What a job's log has for that power as drawn; of a plan, exactly the plan's. The job has choices.
Watts planned_power(const PoweredJob& job, Watts drawn);

}  // namespace perseus::power
