// Which point of its frontier each pipeline of a job should run now, and why.
//
// Problem: paper section 3.1's T_opt = min(T*, T'), for a job whose pipelines may differ, some of which straggle,
//          under an operator's policies.
// Input:   the job, the frontiers that are known.
// Output:  the deployment; nothing while a pipeline is without a frontier and not failed. Every pipeline waits for
//          the slowest straggler, T' = max over those of degree * T. All others run the time of least total energy
//          that is not slower than T' and T_max of the slowest pipeline (planning/model/default_plan.h), each its
//          slowest realized point within it; a policy may allow or ask for more. A pipeline that straggles keeps its
//          own plan for T. While a newer profile is characterized, or failed to be, the older frontier rules.
//          Pipelines that never had one run at maximum clock.
// Errors:  none.
// Cost:    O(pipelines + notices + log points), O(points) under a power cap.
// Threads: pure functions.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/jobs/job.h"
#include "server/jobs/policy.h"

namespace perseus::jobs {

/// By frontier key: see quick_frontier_key().
using Frontiers = std::map<std::string, std::shared_ptr<const CharacterisedPipeline>, std::less<>>;

/// The key of the frontier that rules a pipeline now (of an input that failed, the input); empty: it has none yet.
const std::string& ruling_frontier(const Job& job, int pipeline);

/// Accelerators of one pipeline of the job over those that the frontier counts.
double scale_of(const Job& job, const CharacterisedPipeline& pipeline);

/// T, an iteration that waits for no other pipeline: T_max, the time with everything at the highest clock, or T_min
/// where no plan is that fast, or a faster time that needs less energy.
Seconds time_without_straggler(const CharacterisedPipeline& pipeline);

/// Without version and first iteration. `default_slowdown`: see Room.
std::optional<PlanDeployed> desired_deployment(const Job& job, const Frontiers& frontiers, double default_slowdown,
                                               double now_s);

/// The plan in force says something else.
bool differs(const PlanDeployed& desired, const std::optional<PlanDeployed>& in_force);

/// Keys that the job's plan needs and that are characterized.
std::vector<std::string> frontiers_needed(const Job& job);
/// Inputs that are not characterized yet and did not fail; the quick frontier alone does not count.
std::vector<std::string> characterisations_needed(const Job& job);

}  // namespace perseus::jobs
