// Chooses the frontier point that each pipeline of a job should run now, and gives the reason.
//
// Problem: paper section 3.1's T_opt = min(T*, T'), for a job whose pipelines may differ, some of which straggle,
//          under an operator's policies.
// Input:   the job, and the frontiers that are known.
// Output:  the deployment; nothing while a pipeline has neither a frontier nor a failure. Every pipeline waits for
//          the slowest straggler, T' = max over stragglers of degree * T. The other pipelines run the time of least
//          total energy that is no slower than T' and T_max of the slowest pipeline (planning/model/default_plan.h),
//          each at its slowest realized point within that time; a policy may allow or require more. A straggling
//          pipeline keeps its own plan for T. Steps of other shapes whose frontiers are known are planned in the same
//          way. While a newer profile is being characterized, or if its
//          characterization failed, the older frontier applies. Pipelines that never had a frontier run at maximum
//          clock.
// Errors:  none.
// Cost:    O(pipelines + notices + log points), O(points) under a power cap.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/jobs/job.h"
#include "server/policies/pacing.h"
#include "server/policies/policy_target.h"

namespace perseus::policies {

/// Frontiers by key: see quick_frontier_key().
using Frontiers = std::map<std::string, std::shared_ptr<const jobs::CharacterizedPipeline>, std::less<>>;

/// Key of the frontier that applies to a pipeline now (if characterization failed: its input's key); empty: none yet.
/// For steps of the shape that is planned first (jobs/job_shapes.h), or of another one.
const std::string& ruling_frontier(const jobs::Job& job, int pipeline);
const std::string& ruling_frontier(const jobs::Job& job, int pipeline, int shape);

/// Accelerators of one pipeline of the job divided by those that the frontier counts.
double scale_of(const jobs::Job& job, const jobs::CharacterizedPipeline& pipeline);

/// T, the time of an iteration that waits for no other pipeline: T_max, the time with everything at the highest
/// clock, or T_min where no plan is that fast, or a faster time that needs less energy.
Seconds time_without_straggler(const jobs::CharacterizedPipeline& pipeline);

/// The deployment without version and first iteration. `default_slowdown`: see TimeBounds.
std::optional<jobs::PlanDeployed> desired_deployment(const jobs::Job& job, const Frontiers& frontiers,
                                                     double default_slowdown, double now_s);

/// Why no plan keeps the job's policy of that kind, as a sentence. Empty: it is kept, or there is no frontier yet.
std::string policy_not_kept(const jobs::Job& job, const Frontiers& frontiers, std::string_view kind, double now_s);

/// What a job can draw, for the allocation of a site's watts.
struct PowerChoices {
  std::vector<PowerAtTime> plans;  ///< fastest first, as its policies and stragglers allow; at least one
  Seconds full_speed;              ///< of the fastest plan, whatever policies and stragglers
  Watts all_max;                   ///< everything at maximum clock
  struct AtClock {
    int clock_mhz = 0;
    Watts power;
  };
  std::vector<AtClock> at_clocks;  ///< highest first: the power of all ranks, each in its most power-hungry computation
                                   ///< at that clock or below
  struct Pipelines {
    std::shared_ptr<const jobs::CharacterizedPipeline> pipeline;
    double following = 0, straggling = 0;  ///< copies of the accelerators that its frontier counts
  };
  std::vector<Pipelines> pipelines = {};  ///< that the plans are for
  std::size_t unpaced = 0;                ///< so many of `plans` are plans; the others are the slowest one with waits
  double paced_to_rate = 0;               ///< as in TimeBounds
  int paced_ceiling_mhz = 0;              ///< see pacing.h
  PacedRuns paced = {};                   ///< `powers` are the last of `plans`
};
/// Nothing while a pipeline has no frontier in memory, or runs at maximum clock. `paced_to_rate`: as in TimeBounds.
std::optional<PowerChoices> power_choices(const jobs::Job& job, const Frontiers& frontiers, double default_slowdown,
                                          double now_s, double paced_to_rate = 0);
/// No plan draws that little, and waits are allowed.
bool is_paced(const PowerChoices& choices, Watts watts);
/// The highest clock that keeps to that power; the lowest if none does; for a paced job that of paced_runs().
int ceiling_within(const PowerChoices& choices, Watts most);
/// What a job keeps that has a grant of so many watts and no plan: with the ceiling of ceiling_within() or
/// `ceiling_mhz`, whichever is lower, and for a paced job the period that this needs.
jobs::LaterBudget without_plan(const PowerChoices& choices, Watts granted, int ceiling_mhz);

/// True if the plan in force differs from the desired one.
bool differs(const jobs::PlanDeployed& desired, const std::optional<jobs::PlanDeployed>& in_force);

/// Keys of the characterized frontiers that the job's plan needs.
std::vector<std::string> frontiers_needed(const jobs::Job& job);
/// Inputs that are neither characterized nor failed; a quick frontier alone does not count as characterized.
std::vector<std::string> characterizations_needed(const jobs::Job& job);

inline const model::Measurement& at_or_below(const std::vector<model::Measurement>& options, int clock_mhz) {
  const auto found = std::ranges::find_if(options, [&](const auto& one) { return one.clock.value() <= clock_mhz; });
  return found == options.end() ? options.back() : *found;
}

inline Watts most_power(const std::vector<model::Measurement>& options, int clock_mhz) {
  Watts most;
  for (const model::Measurement& option : options) {
    const bool allowed = option.clock.value() <= clock_mhz || &option == &options.back();
    if (allowed && option.time > Seconds(0)) most = std::max(most, option.energy / option.time);
  }
  return most;
}

}  // namespace perseus::policies
