#include "tests/server/scenario/scenario_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::testing {
namespace {

void add_pipelines(const jobs::JobView& view, ScenarioFacts& facts) {
  auto& [numbers, texts] = facts;
  int pending = 0;
  for (const auto& notice : view.stragglers) pending += notice.in_force ? 0 : 1;
  numbers["pending"] = pending;
  numbers["in_force"] = static_cast<double>(view.stragglers.size()) - pending;
  for (const auto& p : view.pipelines) {
    const std::string name = fmt::format("pipeline.{}", p.pipeline);
    texts[name] = p.straggler ? "straggler" : "normal";
    if (!p.point) continue;
    numbers[name + ".point"] = *p.point;
    numbers[name + ".from_fastest"] = p.points - 1 - *p.point;
    if (view.plan && view.plan->t_min) numbers[name + ".slowdown"] = p.time / *view.plan->t_min;
  }
}

void add_plan(const jobs::JobView& view, ScenarioFacts& facts) {
  auto& [numbers, texts] = facts;
  if (view.plan) {
    texts["reason"] = view.plan->reason;
    if (view.plan->t_min && view.plan->t_opt) numbers["t_opt"] = *view.plan->t_opt / *view.plan->t_min;
    if (view.plan->t_min && view.plan->t_star) numbers["t_star"] = *view.plan->t_star / *view.plan->t_min;
    if (view.plan->t_min && view.plan->t_straggler)
      numbers["t_straggler"] = *view.plan->t_straggler / *view.plan->t_min;
    texts["has_straggler"] = view.plan->t_straggler ? "yes" : "no";
  }
}

void add_profiling(const jobs::JobView& view, ScenarioFacts& facts) {
  auto& [numbers, texts] = facts;
  if (const auto& profiling = view.profiling) {
    texts["profiling"] = profiling->over ? "over" : "under way";
    texts["measured"] = profiling->text;
    numbers["windows"] = profiling->windows;
    numbers["profiling_iterations"] = profiling->iterations;
    numbers["waiting_for"] = static_cast<double>(profiling->waiting_for.size());
    numbers["rejected"] = static_cast<double>(profiling->rejected);
    if (profiling->uncertainty_pct) numbers["uncertainty"] = *profiling->uncertainty_pct;
    if (profiling->cost) {
      numbers["cost_iterations"] = static_cast<double>(profiling->cost->iterations);
      numbers["cost_s"] = profiling->cost->time.value();
      numbers["cost_mean_pct"] = profiling->cost->mean_slowdown_pct;
      numbers["cost_worst_pct"] = profiling->cost->worst_slowdown_pct;
      if (profiling->cost->earned_back_after) numbers["earned_back_after"] = *profiling->cost->earned_back_after;
    }
  }
  if (const auto& trial = view.profile_trial) {
    texts["trial"] = trial->state;
    texts["trial_text"] = trial->text;
  }
  if (const auto found = view.facts.find("profile"); found != view.facts.end()) texts["profile"] = found->second;
}

void add_savings(const jobs::JobView& view, ScenarioFacts& facts) {
  auto& [numbers, texts] = facts;
  if (view.total) {
    numbers["iterations"] = static_cast<double>(view.total->iterations);
    numbers["saved_j"] = view.total->saved.value();
    texts["savings"] = view.total->measured ? "measured" : "estimated";
  } else {
    texts["savings"] = view.no_total;
  }
  if (view.measured) numbers["measured_j"] = view.measured->energy.value();
  if (view.measured_all_max) numbers["measured_all_max_j"] = view.measured_all_max->energy.value();
  texts["no_savings"] = view.no_savings;
  texts["dropped"] = view.dropped.empty() ? "" : view.dropped.front();
  numbers["dropped_plans"] = static_cast<double>(view.dropped.size());
  if (view.per_iteration) numbers["saves_pct"] = view.per_iteration->saved_pct();
  if (view.possible) {
    numbers["would_save_pct"] = view.possible->saving_pct;
    numbers["would_save_stddev_pct"] = view.possible->stddev_pct.value_or(0);
  }
  texts["would_save"] = !view.possible ? "unknown" : view.possible->modeled ? "modeled" : "planned";
  if (view.per_iteration && view.per_iteration->time > Seconds(0)) {
    numbers["planned_j"] = view.per_iteration->energy.value();
    numbers["power_w"] = (view.per_iteration->energy / view.per_iteration->time).value();
  }
}

}  // namespace

ScenarioFacts facts_of(const jobs::PlanAnswer& answer) {
  const auto& schedule = answer.schedule;
  ScenarioFacts facts{{{"unchanged", schedule ? 0 : 1}}, {}};
  auto& [numbers, texts] = facts;
  if (schedule) {
    numbers["version"] = static_cast<double>(schedule->version);
    numbers["from_iteration"] = static_cast<double>(schedule->from_iteration);
    numbers["instructions"] = static_cast<double>(schedule->clocks.size());
    int highest = 0;
    int lowest = 1 << 30;
    for (const formats::ClockedInstruction& c : schedule->clocks) {
      highest = std::max(highest, c.clock.value());
      lowest = std::min(lowest, c.clock.value());
    }
    numbers["highest"] = highest;
    numbers["lowest"] = lowest;
    texts["kind"] = schedule->kind == jobs::StageSchedule::Kind::plan               ? "plan"
                    : schedule->kind == jobs::StageSchedule::Kind::profiling_window ? "profiling_window"
                                                                                    : "maximum_clock";
    texts["reason"] = schedule->reason;
    numbers["microbatches"] = schedule->microbatches;
    std::string shapes;
    for (const jobs::StageSchedule::OfShape& shape : schedule->shapes) {
      shapes += fmt::format("{}{} ({} clocks)", shapes.empty() ? "" : ", ", shape.microbatches, shape.clocks.size());
      const std::string name = fmt::format("shape.{}", shape.microbatches);
      numbers[name + ".time"] = shape.iteration_time / schedule->iteration_time.value_or(Seconds(1));
    }
    texts["shapes"] = shapes;
    texts["slower_because"] = schedule->slower_on_purpose ? schedule->reason : "";
    texts["modeled"] = schedule->modeled ? "yes" : "no";
    if (schedule->saving_pct) numbers["saving_pct"] = *schedule->saving_pct;
    texts["budget"] = schedule->budget ? "yes" : "no";
    if (schedule->budget) {
      numbers["lease"] = schedule->budget->lease_s;
      numbers["ceiling"] = schedule->budget->ceiling_mhz;
      texts["at_once"] = schedule->budget->at_once ? "yes" : "no";
      numbers["paced"] = schedule->budget->paced_iteration_s;
      const std::vector<jobs::LaterBudget>& ahead = schedule->budget->ahead;
      numbers["falls"] = static_cast<double>(ahead.size());
      numbers["falls_to"] = ahead.empty() ? 0 : ahead.back().ceiling_mhz;
      numbers["falls_paced"] = ahead.empty() ? 0 : ahead.back().paced_iteration_s;
    }
    if (schedule->iteration_time && schedule->all_max_time) {
      numbers["time_over_maximum_clock"] = *schedule->iteration_time / *schedule->all_max_time;
    }
  }
  return facts;
}

ScenarioFacts facts_of(const jobs::JobView& view) {
  ScenarioFacts facts;
  facts.numbers = {
      {"ranks", view.ranks_registered},
      {"events", static_cast<double>(view.sequence)},
      {"policies", static_cast<double>(view.policies.size())},
      {"version", view.plan ? static_cast<double>(view.plan->version) : 0},
      {"from_iteration", view.plan ? static_cast<double>(view.plan->from_iteration) : 0},
  };
  facts.texts = {{"state", view.header.state}, {"why", view.reason}};
  facts.numbers["microbatches"] = view.microbatches;
  for (const jobs::JobView::Shape& shape : view.shapes) {
    facts.texts[fmt::format("shape.{}", shape.microbatches)] = shape.planned       ? "planned"
                                                               : shape.why.empty() ? "being planned"
                                                                                   : shape.why;
  }
  facts.numbers["shapes"] = static_cast<double>(view.shapes.size());
  add_pipelines(view, facts);
  add_plan(view, facts);
  add_profiling(view, facts);
  add_savings(view, facts);
  return facts;
}

}  // namespace perseus::testing
