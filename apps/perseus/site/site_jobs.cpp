#include "site/site_jobs.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <tuple>

#include "command_line/progress.h"
#include "plan/effort.h"
#include "plan/pipeline.h"
#include "plan/plan_source.h"
#include "planning/baselines/best_of_all.h"
#include "planning/checker/plan_run.h"
#include "planning/model/reference_plans.h"
#include "planning/site/power_curve.h"
#include "planning/site/site_limits.h"
#include "server/profiling/expected_frontier.h"

namespace perseus::cli {
namespace {

constexpr int kMostGpus = 100'000'000, kMostRampSteps = 10'000;
constexpr double kMostPoints = 1e8;  ///< jobs times intervals

PlannedPipeline planned(model::ComputationDag dag, model::Frontier frontier) {
  const checker::PlanRun all_max = checker::PlanRunner(dag).run(model::all_maximum_clock(dag));
  const int gpus = std::accumulate(dag.accelerators.begin(), dag.accelerators.end(), 0);
  return {std::move(dag), std::move(frontier), all_max.energy / all_max.makespan, gpus};
}

Result<PlannedPipeline> plan_profile(const model::DescribedJob& job, const std::string& effort,
                                     const std::optional<bool>& progress) {
  PipelineOptions options;
  options.profile = job.profile;
  options.schedule = job.schedule;
  options.microbatches = job.microbatches;
  options.chunks = job.chunks;
  if (job.blocking_power) options.blocking_power_w = job.blocking_power->value();
  const Result<Pipeline> pipeline = read_pipeline(options);
  if (!pipeline) return pipeline.error();
  planner::PlannerOptions planner;
  planner.effort = effort_named(effort);
  ProgressLine line("planning job '" + job.name + "'", progress, effort == "low" ? "" : "--effort low is faster");
  planner.progress = line.callback();
  Result<model::Frontier> frontier = baselines::plan_best_of_all(pipeline->dag, planner, {});
  if (!frontier) return frontier.error();
  frontier = profiling::expected_frontier(pipeline->dag, pipeline->drawn, *std::move(frontier), StopCheck::never());
  if (!frontier) return frontier.error();
  return planned(pipeline->dag, *std::move(frontier));
}

Result<PlannedPipeline> plan_of(const model::DescribedJob& job, const std::string& effort,
                                const std::optional<bool>& progress) {
  if (job.plans.empty()) return plan_profile(job, effort, progress);
  Result<formats::PlanFile> plans = read_plans(job.plans);
  if (!plans) return plans.error();
  return planned(std::move(plans->dag), std::move(plans->frontier));
}

/// Jobs with equal keys have the same plans.
auto key_of(const model::DescribedJob& job) {
  return std::tuple(job.plans, job.profile, job.schedule, job.microbatches, job.chunks,
                    job.blocking_power.value_or(Watts(-1)).value());
}

Status add_job(const model::DescribedJob& job, int number, PlannedSite& planned) {
  const PlannedPipeline& pipeline = planned.pipelines[number];
  const double copies = static_cast<double>(job.pipelines) * job.tensor_parallel;
  if (copies * pipeline.gpus > kMostGpus) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: {:.0f} GPUs; allowed: at most {} in a job", job.where,
                                                       copies * pipeline.gpus, kMostGpus)};
  }
  const int gpus = static_cast<int>(copies * pipeline.gpus);
  const Seconds full_speed = pipeline.frontier.points.back().time;
  model::SiteJob one{
      .name = job.name,
      .curve = site::power_curve_of(pipeline.frontier, pipeline.dag.total_blocking_power(), copies, job.least_rate),
      .weight = job.weight.value_or(gpus * job.priority),
      .least_rate = job.least_rate,
      .domain = job.domain,
      .all_max = copies * pipeline.all_max};
  std::optional<site::DueWork> due;
  if (job.deadline) due = site::DueWork{*job.deadline, job.iterations * full_speed};
  for (int k = 1; k <= job.count; ++k) {
    if (job.count > 1) one.name = fmt::format("{}-{}", job.name, k);
    planned.timed.site.jobs.push_back(one);
    planned.timed.due.push_back(due);
    planned.pipeline_of.push_back(number);
    planned.copies.push_back(copies);
    planned.gpus.push_back(gpus);
    planned.full_speed.push_back(full_speed);
  }
  return Ok{};
}

/// Refuses plans of more points than a machine holds.
Status check_intervals(const model::SiteDescription& site, std::size_t jobs) {
  double steps = 1;
  for (const model::DescribedDomain& domain : site.domains) {
    steps += static_cast<double>(domain.limits.size());
    if (domain.ramp.down_w_per_s || domain.ramp.up_w_per_s) {
      if (site.end / site.ramp_step > kMostRampSteps) {
        return Error{ErrorCode::invalid_input,
                     fmt::format("ramp_step_s: {:g}; allowed: at least {:g}, a {}th of end_s", site.ramp_step.value(),
                                 site.end.value() / kMostRampSteps, kMostRampSteps)};
      }
      steps += site.end / site.ramp_step;
    }
  }
  if (steps * static_cast<double>(jobs) <= kMostPoints) return Ok{};
  return Error{ErrorCode::invalid_input,
               fmt::format("{} jobs in up to {:.0f} intervals; allowed: {:g} points in all; a longer ramp_step_s has "
                           "fewer intervals",
                           jobs, steps, kMostPoints)};
}

/// Limits of accelerators: ramped as metered, less what is not theirs.
void set_limits(const model::SiteDescription& site, PlannedSite& planned) {
  std::vector<int> gpus(site.domains.size());
  for (std::size_t j = 0; j < planned.gpus.size(); ++j) {
    gpus[planned.timed.site.jobs[j].domain] += site::in_own_nodes(planned.gpus[j], site);
  }
  planned.constants = site::constants_of(site, gpus);
  planned.timed.end = site.end;
  for (std::size_t d = 0; d < site.domains.size(); ++d) {
    const model::DescribedDomain& domain = site.domains[d];
    planned.timed.windows.push_back(domain.window);
    planned.timed.limits.push_back(site::ramped(domain.limits, domain.ramp, site.end, site.ramp_step));
    for (model::LimitStep& step : planned.timed.limits.back()) {
      step.limit = site::left_for_accelerators(step.limit, site, planned.constants[d]);
    }
  }
}

}  // namespace

Result<PlannedSite> plan_jobs(const model::SiteDescription& site, const std::string& effort,
                              const std::optional<bool>& progress) {
  PlannedSite planned;
  for (const model::DescribedDomain& domain : site.domains) {
    planned.timed.site.domains.push_back({domain.name, domain.parent});
  }
  std::map<decltype(key_of(site.jobs.front())), int> known;
  for (const model::DescribedJob& job : site.jobs) {
    auto found = known.find(key_of(job));
    if (found == known.end()) {
      Result<PlannedPipeline> pipeline = plan_of(job, effort, progress);
      if (!pipeline) {
        return Error{pipeline.error().code, fmt::format("{}: {}", job.where, pipeline.error().message)};
      }
      found = known.emplace(key_of(job), static_cast<int>(planned.pipelines.size())).first;
      planned.pipelines.push_back(*std::move(pipeline));
    }
    if (Status added = add_job(job, found->second, planned); !added) return added.error();
  }
  if (Status few = check_intervals(site, planned.gpus.size()); !few) return few.error();
  set_limits(site, planned);
  if (const Status valid = model::validate(planned.timed.site); !valid) return valid.error();
  return planned;
}

}  // namespace perseus::cli
