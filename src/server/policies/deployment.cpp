#include "server/policies/deployment.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <set>
#include <span>

#include "planning/model/default_plan.h"
#include "server/jobs/job_shapes.h"
#include "server/jobs/pipeline_input.h"
#include "server/policies/stragglers.h"

namespace perseus::policies {
namespace {

/// The job's pipelines grouped by input: groups with a frontier, and per pipeline its group (-1: maximum clock).
struct Grouped {
  std::vector<PolicyScope> groups;
  std::vector<std::string> inputs;  ///< per group
  std::vector<int> group_of;
};

std::optional<Grouped> group_pipelines(const jobs::Job& job, const Frontiers& frontiers,
                                       const std::vector<double>& degrees, int shape) {
  Grouped grouped;
  std::map<std::string, int, std::less<>> group_of_input;
  for (int p = 0; p < job.num_pipelines(); ++p) {
    const std::string& input = ruling_frontier(job, p, shape);
    if (input.empty() && !job.unprofiled) return std::nullopt;
    auto known = group_of_input.find(input);
    if (known == group_of_input.end()) {
      int group = -1;
      if (job.characterized.contains(input) && !job.dropped.contains(std::string(jobs::input_of_frontier(input)))) {
        const auto frontier = frontiers.find(input);
        if (frontier == frontiers.end()) return std::nullopt;  // the frontier is still being read
        group = static_cast<int>(grouped.groups.size());
        grouped.groups.push_back({frontier->second.get(), scale_of(job, *frontier->second), 0, 0});
        grouped.inputs.push_back(input);
      }
      known = group_of_input.emplace(input, group).first;
    }
    grouped.group_of.push_back(known->second);
    if (known->second < 0) continue;
    PolicyScope& group = grouped.groups[known->second];
    ++(degrees[p] > 1 ? group.stragglers : group.count);
  }
  return grouped;
}

std::optional<Grouped> group_pipelines(const jobs::Job& job, const Frontiers& frontiers,
                                       const std::vector<double>& degrees) {
  return group_pipelines(job, frontiers, degrees, jobs::shape_to_plan(job));
}

Seconds t_alone(const PolicyScope& group) { return time_without_straggler(*group.pipeline); }
Seconds t_allowed(const PolicyScope& group) {
  return model::allowed_time(group.pipeline->frontier, group.pipeline->all_max_time);
}
Seconds t_star(const PolicyScope& group) { return group.pipeline->frontier.points.front().time; }

struct Pace {
  Seconds time;  ///< of the slowest pipeline
  int pipeline = 0;
  Seconds t_max;                       ///< allowed without stragglers
  std::optional<Seconds> t_straggler;  ///< of the slowest straggler
};

Pace pace_of(const Grouped& grouped, const std::vector<double>& degrees) {
  Pace pace;
  for (int p = 0; p < static_cast<int>(degrees.size()); ++p) {
    if (grouped.group_of[p] < 0) continue;
    const PolicyScope& group = grouped.groups[grouped.group_of[p]];
    const Seconds allowed = t_allowed(group);
    const Seconds slowed = degrees[p] > 1 ? degrees[p] * t_alone(group) : allowed;
    pace.t_max = std::max(pace.t_max, allowed);
    if (degrees[p] > 1) pace.t_straggler = std::max(pace.t_straggler.value_or(slowed), slowed);
    if (slowed > pace.time) pace.time = slowed, pace.pipeline = p;
  }
  return pace;
}

std::string reason_of(const Pace& pace, const std::vector<double>& degrees, const Grouped& grouped,
                      const Target& target, Seconds slowest_useful) {
  std::string reason = target.reason;
  if (reason.empty() && degrees[pace.pipeline] > 1) {
    reason = fmt::format("pipeline {} is {:.4g} times slower: T' = {:.6g} s", pace.pipeline, degrees[pace.pipeline],
                         pace.time.value());
  } else if (reason.empty() && grouped.groups.size() > 1) {
    reason = fmt::format("no straggler; pipeline {} is the slowest: {:.6g} s", pace.pipeline, pace.time.value());
  } else if (reason.empty()) {
    reason = fmt::format("no straggler: T_max = {:.6g} s", pace.time.value());
  }
  if (degrees[pace.pipeline] == 1 && target.reason.empty() && model::kSameTime * target.time < pace.time) {
    reason += fmt::format("; {:.6g} s needs less energy", target.time.value());
  }
  if (target.time > slowest_useful && target.paced == Seconds(0)) {
    reason += fmt::format("; beyond T* = {:.6g} s, slower saves nothing more", slowest_useful.value());
  }
  return reason;
}

}  // namespace

const std::string& ruling_frontier(const jobs::Job& job, int pipeline) {
  return ruling_frontier(job, pipeline, jobs::shape_to_plan(job));
}

const std::string& ruling_frontier(const jobs::Job& job, int pipeline, int shape) {
  static const std::string none;
  const std::string& newest = jobs::input_for(job, pipeline, shape);
  if (!job.characterized.empty()) {  // so that the ranks of a job without a frontier register without a look-up
    if (job.characterized.contains(newest)) return newest;
    const auto quick = job.characterized.find(jobs::quick_frontier_key(newest));
    if (quick != job.characterized.end()) return quick->first;
  }
  if (job.plan && job.plan->shape == shape && job.plan->of(pipeline).point >= 0) return job.plan->of(pipeline).input;
  return job.failures.contains(newest) ? newest : none;
}

double scale_of(const jobs::Job& job, const jobs::CharacterizedPipeline& pipeline) {
  const std::vector<int>& counted = pipeline.dag.accelerators;
  return static_cast<double>(job.spec.degrees.pp) * job.spec.degrees.tp /
         std::accumulate(counted.begin(), counted.end(), 0);
}

Seconds time_without_straggler(const jobs::CharacterizedPipeline& pipeline) {
  return perseus::model::time_without_straggler(pipeline.frontier, pipeline.all_max_time);
}

namespace {

TimeBounds bounds_of(const Pace& pace, double default_slowdown) {
  return {pace.t_straggler.value_or(Seconds(0)), pace.t_max, default_slowdown};
}

std::size_t group_of_pipeline_0(const Grouped& grouped) {
  return static_cast<std::size_t>(std::max(0, grouped.group_of[0]));
}

}  // namespace

std::string policy_not_kept(const jobs::Job& job, const Frontiers& frontiers, std::string_view kind, double now_s) {
  const std::vector<double> degrees = degrees_in_force(job);
  const auto grouped = group_pipelines(job, frontiers, degrees);
  if (!grouped || grouped->groups.empty()) return "";
  const TimeBounds bounds = bounds_of(pace_of(*grouped, degrees), 0);
  return policy_not_kept(job.policies, kind, grouped->groups, group_of_pipeline_0(*grouped), bounds, now_s);
}

namespace {

/// The budget of a plan under the job's last grant.
std::optional<jobs::PowerBudget> budget_of(const jobs::Job& job) {
  if (!job.grant || !job.grant->granted_w) return std::nullopt;
  const jobs::PowerGranted& grant = *job.grant;
  const bool falls = grant.counted_w == 0 || *grant.granted_w < grant.counted_w;
  return jobs::PowerBudget{*grant.granted_w, grant.lease_s, grant.ceiling_mhz, falls, grant.ahead};
}

/// Power of all accelerators of the pipelines of a group, each rank in its most power-hungry computation at that clock
/// or, where it has only higher ones, at its lowest.
Watts most_at_clock(const PolicyScope& group, int clock_mhz) {
  const model::ComputationDag& dag = group.pipeline->dag;
  std::vector<Watts> of_rank;
  for (const int accelerators : dag.accelerators) of_rank.push_back(accelerators * dag.blocking_power);
  for (const model::Computation& computation : dag.computations) {
    Watts& most = of_rank[computation.rank];
    most = std::max(most, most_power(dag.types[computation.type].options, clock_mhz));
  }
  const Watts sum = std::accumulate(of_rank.begin(), of_rank.end(), Watts());
  return group.scale * (group.count + group.stragglers) * sum;
}

}  // namespace

namespace {

/// The deployment for steps of that shape.
std::optional<jobs::PlanDeployed> deployment_for(const jobs::Job& job, const Frontiers& frontiers, int shape,
                                                 double default_slowdown, double now_s) {
  const std::vector<double> degrees = degrees_in_force(job);
  const auto grouped = group_pipelines(job, frontiers, degrees, shape);
  if (!grouped) return std::nullopt;
  jobs::PlanDeployed plan;
  plan.shape = shape;
  plan.budget = budget_of(job);
  if (grouped->groups.empty() || !job.varies.empty()) {
    plan.choices = {{"", -1}};
    plan.choice_of.assign(job.num_pipelines(), 0);
    plan.reason =
        "maximum clock: " + (job.dropped.empty() || !job.varies.empty() ? job.reason : job.dropped.begin()->second);
    return plan;
  }
  const Pace pace = pace_of(*grouped, degrees);
  TimeBounds bounds = bounds_of(pace, default_slowdown);
  if (plan.budget) bounds.granted = Watts(plan.budget->watts);
  if (plan.budget && paces(job)) bounds.paced_to_rate = job.grant->paced_to_rate;
  const Target target = policy_target(job.policies, grouped->groups, group_of_pipeline_0(*grouped), bounds, now_s);
  if (plan.budget) {
    plan.budget->paced_iteration_s = target.paced.value();
    // What counts is what the plan draws, even if the grant, made for another frontier or other ranks, is less.
    if (!target.kept) plan.budget->watts = std::max(plan.budget->watts, target.power.value());
  }

  Seconds slowest_useful;
  for (const PolicyScope& group : grouped->groups) {
    if (group.count > 0) slowest_useful = std::max(slowest_useful, t_star(group));
  }
  if (slowest_useful == Seconds(0)) slowest_useful = pace.time;  // all pipelines straggle
  if (target.straggler_stretch > 1) slowest_useful = std::max(slowest_useful, target.time);
  plan.t_straggler_s = pace.t_straggler ? std::optional(pace.t_straggler->value()) : std::nullopt;
  plan.t_opt_s = std::min(target.time, slowest_useful).value();
  plan.reason = reason_of(pace, degrees, *grouped, target, slowest_useful);

  std::map<std::pair<int, bool>, int> choice_of;
  for (int p = 0; p < job.num_pipelines(); ++p) {
    const int group = grouped->group_of[p];
    const bool straggler = group >= 0 && degrees[p] > 1;
    const auto [known, is_new] = choice_of.try_emplace({group, straggler}, static_cast<int>(plan.choices.size()));
    if (is_new && group < 0) plan.choices.push_back({"", -1});
    if (is_new && group >= 0) {
      const jobs::CharacterizedPipeline& pipeline = *grouped->groups[group].pipeline;
      const int point = straggler ? straggling_point(pipeline, target.straggler_stretch)
                                  : model::slowest_within(pipeline.frontier, target.time);
      plan.choices.push_back({grouped->inputs[group], point});
    }
    plan.choice_of.push_back(known->second);
  }
  return plan;
}

bool has_clocks(const jobs::PlanDeployed& plan) {
  return std::ranges::any_of(plan.choices, [](const jobs::PlanDeployed::Choice& choice) { return choice.point >= 0; });
}

}  // namespace

std::optional<jobs::PlanDeployed> desired_deployment(const jobs::Job& job, const Frontiers& frontiers,
                                                     double default_slowdown, double now_s) {
  const int first = jobs::shape_to_plan(job);
  auto plan = deployment_for(job, frontiers, first, default_slowdown, now_s);
  // A paced job's period is that of its first shape.
  if (!plan || !job.varies.empty() || (plan->budget && plan->budget->paced_iteration_s > 0)) return plan;
  for (const int shape : jobs::shapes_of(job)) {
    if (shape == first || !jobs::is_planned(job, shape)) continue;
    auto other = deployment_for(job, frontiers, shape, default_slowdown, now_s);
    if (!other) return std::nullopt;  // a frontier is still being read
    if (has_clocks(*other)) plan->others.push_back({shape, std::move(other->choices), std::move(other->choice_of)});
  }
  return plan;
}

namespace {

/// The power of all ranks of these pipelines at each of their clocks, see PowerChoices::at_clocks.
std::vector<PowerChoices::AtClock> powers_at_clocks(const std::vector<PolicyScope>& groups) {
  std::set<int, std::greater<>> clocks;
  for (const PolicyScope& group : groups) {
    for (const model::ComputationType& type : group.pipeline->dag.types) {
      for (const model::Measurement& option : type.options) {
        if (option.clock > Megahertz(0)) clocks.insert(option.clock.value());
      }
    }
  }
  std::vector<PowerChoices::AtClock> powers;
  for (const int clock : clocks) {
    Watts sum;
    for (const PolicyScope& group : groups) sum += most_at_clock(group, clock);
    powers.push_back({clock, sum});
  }
  return powers;
}

}  // namespace

std::optional<PowerChoices> power_choices(const jobs::Job& job, const Frontiers& frontiers, double default_slowdown,
                                          double now_s, double paced_to_rate) {
  const std::vector<double> degrees = degrees_in_force(job);
  const auto grouped = group_pipelines(job, frontiers, degrees);
  if (!grouped || std::ranges::count(grouped->group_of, -1) > 0) return std::nullopt;
  PowerChoices choices;
  Seconds all_max_time;
  for (const PolicyScope& group : grouped->groups) {
    choices.full_speed = std::max(choices.full_speed, group.pipeline->frontier.points.back().time);
    all_max_time = std::max(all_max_time, group.pipeline->all_max_time);
  }
  for (const PolicyScope& group : grouped->groups) {
    const Watts one =
        group.pipeline->all_max_effective_energy / all_max_time + group.pipeline->dag.total_blocking_power();
    choices.all_max += group.scale * (group.count + group.stragglers) * one;
  }
  const TimeBounds bounds = bounds_of(pace_of(*grouped, degrees), default_slowdown);
  const Target own = policy_target(job.policies, grouped->groups, group_of_pipeline_0(*grouped), bounds, now_s);
  choices.plans = powers_from(grouped->groups, std::max(own.time, choices.full_speed), bounds.straggler);
  choices.at_clocks = powers_at_clocks(grouped->groups);
  for (std::size_t g = 0; g < grouped->groups.size(); ++g) {
    const PolicyScope& group = grouped->groups[g];
    choices.pipelines.push_back(
        {frontiers.find(grouped->inputs[g])->second, group.scale * group.count, group.scale * group.stragglers});
  }
  choices.unpaced = choices.plans.size();
  if (paced_to_rate <= 0) return choices;
  const PacedRuns paced = paced_runs(grouped->groups, choices.plans.back(), paced_to_rate);
  if (paced.powers.empty()) return choices;
  choices.plans.insert(choices.plans.end(), paced.powers.begin(), paced.powers.end());
  choices.paced_to_rate = paced_to_rate;
  choices.paced_ceiling_mhz = paced.ceiling_mhz;
  choices.paced = paced;
  return choices;
}

bool is_paced(const PowerChoices& choices, Watts watts) {
  if (choices.paced_to_rate <= 0) return false;
  const auto plans = std::span(choices.plans).first(choices.unpaced);
  return std::ranges::none_of(plans, [&](const PowerAtTime& plan) { return plan.power <= watts * (1 + 1e-9); });
}

int ceiling_within(const PowerChoices& choices, Watts most) {
  if (is_paced(choices, most)) return choices.paced_ceiling_mhz;
  for (const PowerChoices::AtClock& at : choices.at_clocks) {
    if (at.power <= most) return at.clock_mhz;
  }
  return choices.at_clocks.empty() ? 0 : choices.at_clocks.back().clock_mhz;
}

jobs::LaterBudget without_plan(const PowerChoices& choices, Watts granted, int ceiling_mhz) {
  jobs::LaterBudget budget{0, granted.value(), std::min(ceiling_within(choices, granted), ceiling_mhz)};
  if (!is_paced(choices, granted)) return budget;
  constexpr double same_power = 1 + 1e-9;
  const PowerAtTime& run = fastest_within(choices.paced.powers, same_power * granted);
  budget.paced_iteration_s = choices.paced.period_at(run, budget.ceiling_mhz).value();
  return budget;
}

bool differs(const jobs::PlanDeployed& desired, const std::optional<jobs::PlanDeployed>& in_force) {
  if (!in_force) return true;
  if (desired.budget != in_force->budget) return true;
  if (desired.t_straggler_s != in_force->t_straggler_s || desired.t_opt_s != in_force->t_opt_s ||
      desired.reason != in_force->reason) {
    return true;
  }
  if (desired.shape != in_force->shape || desired.others != in_force->others) return true;
  return desired.choices != in_force->choices || desired.choice_of != in_force->choice_of;
}

std::vector<std::string> frontiers_needed(const jobs::Job& job) {
  std::set<std::string> keys;
  std::vector<int> shapes = jobs::shapes_of(job);
  if (job.plan) shapes.push_back(job.plan->shape);
  for (const int shape : shapes) {
    for (int p = 0; p < job.num_pipelines(); ++p) {
      const std::string& input = ruling_frontier(job, p, shape);
      if (job.characterized.contains(input)) keys.insert(input);
    }
  }
  return {keys.begin(), keys.end()};
}

std::vector<std::string> characterizations_needed(const jobs::Job& job) {
  std::set<std::string> keys;
  for (const std::string& input : job.input_of) {
    const bool known =
        job.characterized.contains(input) || job.failures.contains(input) || job.unrefined.contains(input);
    if (!input.empty() && !known) keys.insert(input);
  }
  return {keys.begin(), keys.end()};
}

}  // namespace perseus::policies
