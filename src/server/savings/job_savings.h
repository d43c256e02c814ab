// Savings of a job's plan against everything at maximum clock.
//
// A straggler is modeled as limited in power (a cap, or heat): its computations run at the highest clocks that the
// limit allows, under the plan and at maximum clock alike. A pipeline with a rank that sets no clocks runs at maximum
// clock.
//
// Input:   the job, its plan, the frontiers; for counts, the iterations that ranks reported.
// Output:  cost_under(): time and energy of one iteration of the whole job (all pipelines, all accelerators)
//          under the plan and at maximum clock, each waiting for its own slowest pipeline: an estimate from the
//          profiles. Nothing while a pipeline has no frontier. counted(): iterations since the last count and their
//          savings, for reports that do not name the plan followed. It uses measured energies where all ranks report
//          them, otherwise the estimate. An iteration that no rank reported does not count.
// Errors:  none.
// Cost:    O(pipelines); once per straggler's degree and plan, O(computations * log clocks).
// Threads: io thread (the straggler's cost is kept with the frontier).
// Source:  paper section 6.2.
#pragma once

#include <optional>

#include "server/jobs/requests.h"
#include "server/policies/deployment.h"
#include "server/savings/followed_iterations.h"

namespace perseus::savings {

enum class CountedRanks : unsigned char {
  all_follow,   ///< as if every rank could set clocks: the potential savings
  as_they_are,  ///< ranks that set no clocks run at maximum clock
};
std::optional<jobs::JobView::PerIteration> cost_under(const jobs::PlanDeployed& plan, const jobs::Job& job,
                                                      const policies::Frontiers& frontiers,
                                                      CountedRanks ranks = CountedRanks::all_follow);
/// The same of the plan in force.
std::optional<jobs::JobView::PerIteration> iteration_cost(const jobs::Job& job, const policies::Frontiers& frontiers,
                                                          CountedRanks ranks = CountedRanks::all_follow);

/// Mean power of an iteration, whose time and energy are without the waits of a paced job.
Watts power_with_waits(const jobs::Job& job, Joules energy, Seconds time, Watts waiting);

/// An iteration of that shape at the highest clock, as if its hosts had been as busy as under the plan in force: what
/// both differ in beyond the plan's own slowdown is waits of hosts. Nothing: not measured, or these waits are so long,
/// or the iterations so few or so different, that the counters cannot tell within 0.3 points what the plan saves.
std::optional<jobs::EnergyMeasured> highest_measured(const jobs::Job& job, int shape);
/// Why there is no measured saving though both were measured; empty: there is one, or there is no measurement.
std::string measurements_differ(const jobs::Job& job);
/// Why estimates from the profile are those of another job: the measured energies are far from them. Empty: they are
/// not, nothing is measured, a straggler is in force, or the job has ended. `cost`: iteration_cost() as_they_are.
std::string profile_misfit(const jobs::Job& job, const std::optional<jobs::JobView::PerIteration>& cost);

/// Mean power of the whole job under the plan in force, by the counters of all ranks; nothing before it is measured.
/// `waiting`: the power of all GPUs while they wait.
std::optional<Watts> measured_power(const jobs::Job& job, Watts waiting);

/// Mean power of the whole job, under its plan and with everything at maximum clock: measured where the ranks have
/// measured the plan, otherwise both as estimated. Where they have not measured the highest clock, it is estimated to
/// draw as many times its planned power as the plan, so that a saving compares like with like.
struct JobPower {
  Watts plan, all_max;
  bool measured = false;  ///< `plan` is
};
/// `cost`: of the plan in force.
JobPower power_of(const jobs::Job& job, const jobs::JobView::PerIteration& cost);

/// True while a frontier of the plan in force is being read from the store: no estimate is possible yet.
bool awaits_frontiers(const jobs::Job& job, const policies::Frontiers& frontiers);

/// The plan in force or one of the last ones before it; null: no plan has that version, or it is too old.
const jobs::PlanDeployed* plan_of_version(const jobs::Job& job, std::int64_t version);

/// One standard deviation of the plan's saving by the noise of the profiles, as if all pipelines erred alike; nothing
/// if the profiles count as exact or a pipeline has no frontier.
std::optional<double> saving_stddev_pct(const jobs::PlanDeployed& plan, const jobs::Job& job,
                                        const policies::Frontiers& frontiers);
/// What the plan in force would save if all ranks set their clocks; nothing while they do.
std::optional<jobs::JobView::PossibleSaving> possible_saving(const jobs::Job& job,
                                                             const policies::Frontiers& frontiers);

/// Why the plan saves nothing, or less than possible: ranks that set no clocks. Empty: all ranks set clocks.
std::string without_control(const jobs::Job& job, const policies::Frontiers& frontiers);

/// Nothing if there is nothing to count, or before the first count. `finished`: the last iteration known to have
/// finished.
std::optional<jobs::IterationsCounted> counted(const jobs::Job& job, const policies::Frontiers& frontiers,
                                               std::int64_t finished);

/// The first report under a plan: counts its own iterations, so that later counts start from its last one.
std::optional<jobs::IterationsCounted> first_count(const jobs::Job& job, const policies::Frontiers& frontiers,
                                                   std::int64_t last_iteration, std::int64_t iterations);

/// The same for reports that name the plan followed, split by kind: measured iterations, against the measured highest
/// clock, or estimated iterations, whose energy is unknown or not comparable. Not counted: iterations that followed
/// no plan, iterations without an energy in a job whose ranks all measure, estimates of a plan that was dropped or
/// replaced more than four plans ago, and estimates that the iteration's own energy contradicts. Nothing while a
/// frontier of the plan in force is being read.
std::vector<jobs::IterationsCounted> counted_as_reported(const jobs::Job& job, const policies::Frontiers& frontiers,
                                                         const FollowedIterations& followed);

/// Energy and time of a pipeline whose GPUs run under a power limit that slows it by `degree` (> 1): each computation
/// runs at the highest clock, not above the requested one, that draws no more; requested clocks arrive one switch
/// latency late. Under the plan and at the highest clock; a degree that no limit reaches counts as the lowest limit.
jobs::LimitedPower under_power_limit(const jobs::CharacterizedPipeline& pipeline, int point, double degree,
                                     Seconds switch_latency);

}  // namespace perseus::savings
