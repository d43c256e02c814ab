#include "server/live/job_view.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "server/jobs/event_text.h"
#include "server/jobs/job_shapes.h"
#include "server/jobs/pipeline_input.h"
#include "server/live/learned_profile.h"
#include "server/policies/stragglers.h"
#include "server/savings/job_savings.h"

namespace perseus::live {
std::vector<jobs::IterationsCounted> counts_since(const LiveJob& live) {
  const jobs::Job& job = live.job;
  if (!job.live()) return {};
  if (live.reports.name_plans(live.job))
    return savings::counted_as_reported(job, live.frontiers.all(), live.reports.followed);
  // The first report of a client that names its process also names the plan that it followed.
  if (live.no_plan_followed() || (job.names_processes && !live.reports.without_plan)) return {};
  const std::int64_t finished = live.reports.progress ? live.reports.progress->finished() : 0;
  const std::int64_t possible = std::max<std::int64_t>(0, live.reports.possible - job.total.iterations);
  const auto since = savings::counted(job, live.frontiers.all(), std::min(finished, job.counted_to + possible));
  return since ? std::vector{*since} : std::vector<jobs::IterationsCounted>{};
}

namespace {

jobs::JobView::PlanInForce plan_of(const LiveJob& live) {
  const jobs::Job& job = live.job;
  jobs::JobView::PlanInForce plan;
  plan.version = job.plan->version;
  plan.from_iteration = job.plan->from_iteration;
  plan.deployed_s = job.deployed_s;
  plan.reason = job.plan->reason;
  if (job.plan->t_straggler_s) plan.t_straggler = Seconds(*job.plan->t_straggler_s);
  if (job.plan->t_opt_s) plan.t_opt = Seconds(*job.plan->t_opt_s);
  for (const jobs::PlanDeployed::Choice& choice : job.plan->choices) {
    const auto pipeline = live.frontiers.find(choice.input);
    if (pipeline == nullptr) continue;
    plan.t_max = std::max(plan.t_max.value_or(Seconds(0)), pipeline->all_max_time);
    plan.t_min = std::max(plan.t_min.value_or(Seconds(0)), pipeline->frontier.points.back().time);
    plan.t_star = std::max(plan.t_star.value_or(Seconds(0)), pipeline->frontier.points.front().time);
  }
  return plan;
}

std::vector<jobs::JobView::PipelineView> pipelines_of(const LiveJob& live) {
  const jobs::Job& job = live.job;
  const std::vector<double> degrees = policies::degrees_in_force(job);
  std::vector<jobs::JobView::PipelineView> views;
  for (int p = 0; p < job.num_pipelines(); ++p) {
    jobs::JobView::PipelineView& view = views.emplace_back();
    view.pipeline = p;
    view.straggler = degrees[p] > 1;
    const std::string& input =
        job.plan && job.plan->of(p).point >= 0 ? job.plan->of(p).input : policies::ruling_frontier(job, p);
    if (const auto facts = job.characterized.find(input); facts != job.characterized.end()) {
      view.frontier = input;
      view.points = facts->second.points;
    }
    if (!job.plan || job.plan->of(p).point < 0) continue;
    view.point = job.plan->of(p).point;
    const auto pipeline = live.frontiers.find(input);
    if (pipeline == nullptr) continue;
    view.time = pipeline->frontier.points[*view.point].time;
    view.energy = policies::scale_of(job, *pipeline) * pipeline->frontier.points[*view.point].energy;
  }
  return views;
}

/// As measured where available, otherwise estimated.
std::optional<Joules> saved_per_iteration(const LiveJob& live) {
  const jobs::Job& job = live.job;
  const jobs::EnergyMeasured* const plan = job.plan_measured();
  const auto highest = savings::highest_measured(job, job.shown_shape());
  if (plan != nullptr && highest) return Joules(highest->energy_j - plan->energy_j);
  const auto cost = savings::iteration_cost(job, live.frontiers.all(), savings::CountedRanks::as_they_are);
  if (!cost) return std::nullopt;
  return cost->all_max_energy - cost->energy;
}

std::optional<jobs::JobView::Waits> waits_of(const jobs::Job& job, const jobs::JobView::PerIteration& cost) {
  const Seconds period(job.plan && job.plan->budget ? job.plan->budget->paced_iteration_s : 0);
  if (period <= cost.time) return std::nullopt;
  return jobs::JobView::Waits{period, period - cost.time, cost.waiting * (period - cost.time)};
}

std::optional<jobs::ProfilingCost> cost_of_profiling(const LiveJob& live);

jobs::JobView::Profiling profiling_of(const LiveJob& live) {
  const jobs::Job& job = live.job;
  jobs::JobView::Profiling profiling;
  profiling.over = job.state != jobs::JobState::profiling;
  profiling.windows = job.profiled.windows;
  profiling.iterations = job.profiled.iterations;
  profiling.uncertainty_pct = job.profiled.uncertainty_pct;
  profiling.text = job.profiled.text;
  profiling.cost = cost_of_profiling(live);
  if (!profiling.over && !job.all_reported()) {
    for (int rank = 0; rank < static_cast<int>(job.ranks.size()); ++rank) {
      const bool measures = job.ranks[rank] && job.ranks[rank]->dp_rank == job.measured_pipeline();
      if (measures && !job.reported.contains(rank)) profiling.waiting_for.push_back(rank);
    }
  }
  if (live.profiling) {
    profiling.rejected = live.profiling->rejected();
    profiling.rejections.assign(live.profiling->last_rejections().begin(), live.profiling->last_rejections().end());
  }
  return profiling;
}

std::optional<jobs::JobView::PerIteration> cost_of(const LiveJob& live) {
  if (!live.job.live()) return std::nullopt;
  return savings::iteration_cost(live.job, live.frontiers.all(), savings::CountedRanks::as_they_are);
}

/// What the ranks run of a planned iteration.
std::optional<jobs::JobView::PerIteration> as_run(const LiveJob& live,
                                                  std::optional<jobs::JobView::PerIteration> cost) {
  if (cost && live.first_plan_held_back()) {
    cost->energy = cost->all_max_energy;
    cost->time = cost->all_max_time;
  }
  return cost;
}

/// Nothing without reports, or where the profile is of another job: what is saved is then not known. Of an ended job,
/// also where nothing was counted.
std::optional<jobs::JobView::TotalSavings> total_of(const LiveJob& live, bool misfit) {
  const jobs::Job& job = live.job;
  if (!job.plan || !job.has_reports()) return std::nullopt;
  jobs::IterationsCounted total = job.total, estimated = job.estimated;
  for (const jobs::IterationsCounted& since : counts_since(live)) {
    total.iterations += since.iterations;
    total.saved_j += since.saved_j;
    total.all_max_energy_j += since.all_max_energy_j;
    if (since.measured) continue;
    estimated.iterations += since.iterations;
    estimated.saved_j += since.saved_j;
  }
  const bool only_estimates = total.iterations == 0 && !savings::highest_measured(job, job.shown_shape());
  if (only_estimates && (misfit || !job.live())) return std::nullopt;
  return jobs::JobView::TotalSavings{total.iterations,
                                     Joules(total.saved_j),
                                     Joules(total.all_max_energy_j),
                                     total.iterations > 0 && estimated.iterations == 0,
                                     estimated.iterations,
                                     Joules(estimated.saved_j)};
}

/// Cost for all pipelines, though one of them measured.
std::optional<jobs::ProfilingCost> cost_of_profiling(const LiveJob& live) {
  const jobs::Job& job = live.job;
  const jobs::Job::Profiled& profiled = job.profiled;
  if (profiled.highest_s <= 0) return std::nullopt;
  jobs::ProfilingCost cost;
  cost.iterations = profiled.iterations;
  if (profiled.first_iteration > 0) {
    cost.iterations = std::max(cost.iterations, profiled.last_iteration - profiled.first_iteration + 1);
  }
  const auto pipelines = static_cast<double>(job.profiling->pipelines.size());
  cost.time = Seconds(profiled.extra_s);
  cost.energy = Joules(pipelines * profiled.extra_j);
  cost.mean_slowdown_pct =
      100 * profiled.extra_s / profiled.highest_s / static_cast<double>(std::max<std::int64_t>(1, cost.iterations));
  cost.worst_slowdown_pct = profiled.worst_slowdown_pct;
  if (const auto saved = saved_per_iteration(live); saved && *saved > Joules(0)) {
    cost.earned_back_after = std::max(0.0, std::ceil(cost.energy / *saved));
  }
  return cost;
}

}  // namespace

namespace {

/// Nothing if all steps have the job's own.
std::vector<jobs::JobView::Shape> shapes_shown(const jobs::Job& job) {
  std::vector<jobs::JobView::Shape> shapes;
  if (job.shapes.empty()) return shapes;
  for (const int microbatches : jobs::shapes_of(job)) {
    jobs::JobView::Shape& shape = shapes.emplace_back();
    shape.microbatches = microbatches;
    if (job.plan) {
      const auto plan = jobs::plan_for(*job.plan, microbatches);
      shape.planned = plan && std::ranges::any_of(plan->choices, [](const auto& choice) { return choice.point >= 0; });
    }
    const auto known = std::ranges::find(job.shapes, microbatches, &jobs::JobShape::microbatches);
    if (known != job.shapes.end() && !known->why_not.empty()) shape.why = known->why_not.begin()->second;
  }
  return shapes;
}

}  // namespace

std::optional<jobs::JobView::PerIteration> iteration_run(const LiveJob& live) {
  return as_run(live, savings::iteration_cost(live.job, live.frontiers.all(), savings::CountedRanks::as_they_are));
}

jobs::JobSummary summary_of(const LiveJob& live) {
  const jobs::Job& job = live.job;
  jobs::JobSummary summary;
  summary.ranks = job.spec.degrees.world_size();
  summary.ranks_registered = job.ranks_registered;
  summary.pipelines = job.num_pipelines();
  const auto owner = job.spec.facts.find(std::string(kOwnerFact));
  summary.labels = job.spec.labels;
  summary.owner = owner == job.spec.facts.end() ? "" : owner->second;
  const auto accelerator = job.spec.facts.find("accelerator");
  if (accelerator != job.spec.facts.end()) summary.accelerator = accelerator->second;
  if (job.live() && job.silent) summary.silent_since_s = job.silent->since_s;
  if (job.live()) summary.silent_ranks = static_cast<int>(job.silent_ranks.size());
  if (job.live()) {
    summary.stragglers =
        static_cast<int>(std::ranges::count_if(policies::degrees_in_force(job), [](double d) { return d > 1; }));
  }
  const auto plan = cost_of(live);
  const bool misfit = !savings::profile_misfit(job, plan).empty();
  const bool held_back = live.first_plan_held_back();
  if (const auto run = as_run(live, plan)) {
    summary.iteration_time = run->time;
    if (!misfit && !held_back) summary.saved_pct = run->saved_pct();
    if (job.has_reports() && !job.silent) {
      const savings::JobPower power = savings::power_of(job, *run);
      summary.power = power.plan;
      summary.all_max_power = power.all_max;
      summary.power_measured = power.measured;
      summary.planned_power = run->energy / run->time;
    }
  }
  summary.maximum_clock = job.state == jobs::JobState::deployed && job.plan &&
                          std::ranges::all_of(job.plan->choices, [](const auto& choice) { return choice.point < 0; });
  if (const auto possible = job.live() ? savings::possible_saving(job, live.frontiers.all()) : std::nullopt) {
    summary.possible_saving_pct = possible->saving_pct;
    summary.possible_saving_stddev_pct = possible->stddev_pct;
    summary.possible_saving_modeled = possible->modeled;
  } else if (held_back && plan && !misfit) {
    summary.possible_saving_pct = plan->saved_pct();
    summary.possible_saving_stddev_pct = savings::saving_stddev_pct(*job.plan, job, live.frontiers.all());
  }
  if (const auto total = total_of(live, misfit)) {
    summary.saved = total->saved;
    summary.estimated_saved = total->estimated_saved;
  }
  return summary;
}

jobs::JobView view_of(const LiveJob& live, double now_s) {
  const jobs::Job& job = live.job;
  jobs::JobView view;
  view.header = {job.id, job.spec.name, std::string(jobs::shown_state(job)), job.created_s, job.updated_s};
  if (job.live() && job.silent) view.silent_since_s = job.silent->since_s;
  view.reason = job.reason;
  if (job.unknown_events > 0) view.reason = later_version(job.id).message;
  if (view.reason.empty() && live.first_plan_held_back()) {
    view.reason = "the ranks run at their highest clock until their switch latency is known and planned with";
  }
  if (view.reason.empty() && job.live() && std::ranges::any_of(job.characterizing, [&](const std::string& input) {
        return job.characterized.contains(jobs::quick_frontier_key(input));
      })) {
    view.reason = "the plan is from a quick frontier; the full one is being planned";
  }
  if (view.reason.empty() && job.live()) view.reason = jobs::text_of_silent_ranks(job);
  view.per_iteration = cost_of(live);
  const std::string misfit = savings::profile_misfit(job, view.per_iteration);
  if (view.reason.empty()) view.reason = misfit;
  if (view.reason.empty()) view.reason = savings::measurements_differ(job);
  view.now_s = now_s;
  view.sequence = job.sequence;
  view.schedule = job.schedule;
  view.microbatches = job.prevailing();
  view.shapes = shapes_shown(job);
  view.degrees = job.spec.degrees;
  view.ranks_registered = job.ranks_registered;
  view.ranks_waiting = static_cast<int>(live.calls.waiters.size());
  view.facts = job.spec.facts;
  view.labels = job.spec.labels;
  if (!job.profile_source.empty()) view.facts.emplace("profile", job.profile_source);
  for (const auto& [input, planned] : job.planned_with) {
    view.profile_doubts.insert(view.profile_doubts.end(), planned.doubts.begin(), planned.doubts.end());
  }
  view.detect_stragglers = job.spec.detect_stragglers;
  if (job.profiling) view.profiling = profiling_of(live);
  if (job.trial) {
    const auto& ended = job.trial->ended;
    view.profile_trial = {!ended          ? "under_way"
                          : ended->agreed ? "confirmed"
                                          : "doubted",
                          job.trial->candidate.learned_by, ended ? ended->text : ""};
  }
  if (job.plan) {
    view.plan = plan_of(live);
    view.total = total_of(live, !misfit.empty());
    if (!view.total && !misfit.empty()) {
      view.no_total = misfit;
    } else if (!view.total) {
      view.no_total = !job.has_reports() ? "no reports of iterations"
                                         : "no iteration was counted: none followed a plan, or energies were far from "
                                           "those of the profile";
    }
  }
  if (job.live()) {
    view.possible = savings::possible_saving(job, live.frontiers.all());
    if (view.per_iteration) view.waits = waits_of(job, *view.per_iteration);
  }
  const auto measured = [](const jobs::EnergyMeasured* e) {
    return e != nullptr ? std::optional(jobs::JobView::Measured{Joules(e->energy_j), Seconds(e->time_s), e->iterations})
                        : std::nullopt;
  };
  view.measured = measured(job.plan_measured());
  const auto highest = savings::highest_measured(job, job.shown_shape());
  view.measured_all_max = measured(highest ? &*highest : nullptr);
  view.no_savings = savings::without_control(job, live.frontiers.all());
  for (const auto& [input, text] : job.dropped) view.dropped.push_back(text);
  view.pipelines = pipelines_of(live);
  view.stragglers = job.notices;
  for (const auto& [kind, policy] : job.policies) view.policies.push_back({policy, text_of(policy)});
  return view;
}

bool leaves_plans_unchanged(const jobs::EventBody& body) {
  return std::holds_alternative<jobs::RankRegistered>(body) || std::holds_alternative<jobs::RankMeasured>(body) ||
         std::holds_alternative<jobs::ResultReported>(body) || std::holds_alternative<jobs::JobSeen>(body) ||
         std::holds_alternative<jobs::IterationsCounted>(body) || std::holds_alternative<jobs::ReportsKept>(body) ||
         std::holds_alternative<jobs::VersionHeld>(body) || std::holds_alternative<jobs::JobSilent>(body) ||
         std::holds_alternative<jobs::JobHeard>(body);
}

namespace {

bool revalues_iterations(const LiveJob& live, const jobs::EventBody& body) {
  if (const auto* rank = std::get_if<jobs::RankRegistered>(&body)) return live.has_rank(rank->rank);
  if (const auto* rank = std::get_if<jobs::RankMeasured>(&body)) return rank->control.has_value();
  if (std::holds_alternative<jobs::ReportsKept>(body)) return !live.reports.name_plans(live.job);
  if (const auto* measured = std::get_if<jobs::EnergyMeasured>(&body)) {
    return measured->version == 0 || !live.reports.name_plans(live.job);
  }
  return std::holds_alternative<jobs::PlanDeployed>(body) || std::holds_alternative<jobs::StragglerTookEffect>(body) ||
         std::holds_alternative<jobs::StragglerWithdrawn>(body) || std::holds_alternative<jobs::JobFinished>(body) ||
         std::holds_alternative<jobs::JobExpired>(body);
}

}  // namespace

std::vector<jobs::IterationsCounted> counts_before(const LiveJob& live, const jobs::EventBody& body) {
  return revalues_iterations(live, body) ? counts_since(live) : std::vector<jobs::IterationsCounted>();
}

}  // namespace perseus::live
