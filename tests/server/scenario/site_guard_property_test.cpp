// Random jobs under limits whose meters average over windows: their power, from computation to computation and with
// pipelines at random places of their iterations, against the limits. Their power comes from the checker's runs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "oracles/dice.h"
#include "oracles/instances.h"
#include "planning/checker/plan_run.h"
#include "planning/model/default_plan.h"
#include "planning/model/reference_plans.h"
#include "server/power/site_guard.h"

namespace perseus::service {
namespace {

using testing::Dice;
using testing::ShrinkingDice;

using Pipeline = std::shared_ptr<const jobs::CharacterizedPipeline>;

model::FrontierPoint point_of(const model::ComputationDag& dag, const model::Plan& plan) {
  const checker::PlanRun run = checker::run_plan(dag, plan);
  model::FrontierPoint point;
  point.plan = plan;
  point.time = run.makespan;
  point.effective_energy = run.effective_energy;
  return point;
}

/// A frontier of random plans; nothing if an iteration takes no time.
Pipeline random_pipeline(Dice& dice, int number) {
  jobs::CharacterizedPipeline made;
  made.key = std::to_string(number);
  made.dag = testing::random_pipeline(dice, "1f1b", {});
  const model::FrontierPoint all_max = point_of(made.dag, model::all_maximum_clock(made.dag));
  if (all_max.time <= Seconds(0)) return nullptr;
  made.all_max_time = all_max.time;
  made.all_max_effective_energy = all_max.effective_energy;
  auto& points = made.frontier.points;
  points.push_back(all_max);
  for (int p = dice.roll(1, 6); p > 0; --p) points.push_back(point_of(made.dag, testing::random_plan(dice, made.dag)));
  std::ranges::sort(points, std::greater<>(), &model::FrontierPoint::time);
  const auto same_time = [](const auto& a, const auto& b) { return a.time == b.time; };
  points.erase(std::unique(points.begin(), points.end(), same_time), points.end());
  return std::make_shared<const jobs::CharacterizedPipeline>(std::move(made));
}

std::shared_ptr<const policies::PowerChoices> choices_of(const Pipeline& pipeline, double copies) {
  policies::PowerChoices choices;
  choices.full_speed = pipeline->frontier.points.back().time;
  choices.plans = policies::powers_from({{pipeline.get(), copies, 1, 0}}, choices.full_speed, Seconds(0));
  choices.all_max =
      copies * (pipeline->all_max_effective_energy / pipeline->all_max_time + pipeline->dag.total_blocking_power());
  for (const policies::PowerAtTime& plan : choices.plans) choices.all_max = std::max(choices.all_max, plan.power);
  choices.pipelines = {{pipeline, copies, 0}};
  return std::make_shared<const policies::PowerChoices>(std::move(choices));
}

/// Energy of one pipeline from the beginning of an iteration that repeats until a time.
class Drawn {
 public:
  Drawn(const jobs::CharacterizedPipeline& pipeline, Seconds iteration)
      : dag_(pipeline.dag),
        length_s_(iteration.value()),
        run_(checker::run_plan(dag_,
                               pipeline.frontier.points[model::slowest_within(pipeline.frontier, iteration)].plan)) {}

  [[nodiscard]] double length_s() const { return length_s_; }
  /// Mean power of a window; of one that takes no time, the power at its beginning.
  [[nodiscard]] double mean_w(double from_s, double window_s) const {
    constexpr double kMoment_s = 1e-9;
    const double part_s = std::max(window_s, kMoment_s * length_s_);
    return (until_j(from_s + part_s) - until_j(from_s)) / part_s;
  }

 private:
  [[nodiscard]] double until_j(double time_s) const {
    const double whole = std::floor(time_s / length_s_);
    return whole * within_j(length_s_) + within_j(time_s - whole * length_s_);
  }
  [[nodiscard]] double within_j(double time_s) const {
    double energy_j = dag_.total_blocking_power().value() * time_s;
    for (std::size_t i = 0; i < run_.start.size(); ++i) {
      const double begin_s = run_.start[i].value(), takes_s = run_.end[i].value() - begin_s;
      if (takes_s <= 0) continue;
      const double part = std::clamp((time_s - begin_s) / takes_s, 0.0, 1.0);
      const double waiting_j = dag_.blocking_power_of(static_cast<int>(i)).value() * takes_s;
      energy_j += part * (run_.energy_of[i].value() - waiting_j);
    }
    return energy_j;
  }

  const model::ComputationDag& dag_;
  double length_s_;
  checker::PlanRun run_;
};

struct RandomSite {
  power::PoweredSite site;
  Seconds window;

  /// That of a job under a grant, in a window at a random place.
  [[nodiscard]] double drawn_w(Dice& dice, std::size_t job, Watts grant) const {
    const power::PoweredJob& of = site.jobs[job];
    const auto& plans = of.choices->plans;
    const Watts planned = grant / of.correction * (1 + 1e-9);
    const auto within = std::ranges::find_if(plans, [&](const auto& plan) { return plan.power <= planned; });
    const Seconds time = within == plans.end() ? plans.back().time : within->time;
    const auto& [pipeline, copies, none] = of.choices->pipelines[0];
    const Drawn drawn(*pipeline, time);
    return of.correction * copies * drawn.mean_w(dice.real(0, 1) * drawn.length_s(), window.value());
  }
};

/// Jobs in one domain; empty if an iteration takes no time.
RandomSite random_site(Dice& dice) {
  RandomSite random;
  std::vector<Pipeline> pipelines;
  for (int p = dice.roll(1, 3); p > 0; --p) {
    pipelines.push_back(random_pipeline(dice, p));
    if (!pipelines.back()) return random;
  }
  power::SwingLibrary library;
  power::PoweredSite& site = random.site;
  site.domains.push_back({"hall", -1});
  for (int j = dice.roll(1, 12); j > 0; --j) {
    power::PoweredJob job;
    job.id = std::to_string(j);
    job.correction = dice.real(0.8, 1.25);
    const auto& pipeline = pipelines[dice.roll(0, static_cast<int>(pipelines.size()) - 1)];
    job.choices = choices_of(pipeline, dice.roll(1, 4));
    job.swing = library.of(job.choices);
    job.counted = job.granted = job.all_max();
    site.jobs.push_back(job);
  }
  random.window = pipelines[0]->all_max_time * (dice.roll(0, 3) == 0 ? 0 : dice.real(0.05, 5));
  site.windows = {random.window};
  return random;
}

Watts all_max(const power::PoweredSite& site) {
  Watts sum;
  for (const power::PoweredJob& job : site.jobs) sum += job.all_max();
  return sum;
}

RC_GTEST_PROP(SiteGuardProperty, SharesStayWithinTheLimitInEveryWindow, ()) {
  ShrinkingDice dice;
  RandomSite random = random_site(dice);
  if (random.site.jobs.empty() || all_max(random.site) <= Watts(0)) return;
  random.site.limits = {dice.real(0.6, 1.3) * all_max(random.site)};
  const power::SiteShares shares = power::shares_of(random.site);
  RC_ASSERT(shares.guard.size() == 1U);
  if (shares.missing[0] > Watts(0)) return;
  for (int trial = 0; trial < 20; ++trial) {
    double total_w = 0;
    for (std::size_t j = 0; j < random.site.jobs.size(); ++j) total_w += random.drawn_w(dice, j, shares.wanted[j]);
    RC_ASSERT(total_w <= random.site.limits[0].value() * (1 + 1e-6));
  }
}

/// While jobs follow the grants of before or the next ones.
RC_GTEST_PROP(SiteGuardProperty, GrantsRiseWithinTheLimitInEveryWindow, ()) {
  ShrinkingDice dice;
  RandomSite random = random_site(dice);
  power::PoweredSite& site = random.site;
  if (site.jobs.empty() || all_max(site) <= Watts(0)) return;
  site.limits = {dice.real(0.5, 1) * all_max(site)};
  const power::SiteShares before = power::shares_of(site);
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    site.jobs[j].counted = site.jobs[j].granted = before.wanted[j];
    site.jobs[j].has_grant = true;
    site.jobs[j].weight = dice.roll(1, 9);  // others are urgent now
  }
  site.limits[0] = dice.real(1, 1.2) * site.limits[0];
  const power::SiteShares shares = power::shares_of(site);
  if (before.missing[0] > Watts(0) || shares.missing[0] > Watts(0)) return;
  std::vector<site::GrantedPower> powers;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    powers.push_back({0, site.jobs[j].counted, site.jobs[j].granted, shares.wanted[j], true});
  }
  const std::vector<Watts> next = power::next_grants(site, powers);
  for (int trial = 0; trial < 20; ++trial) {
    double total_w = 0;
    for (std::size_t j = 0; j < site.jobs.size(); ++j) {
      total_w += random.drawn_w(dice, j, dice.roll(0, 1) == 0 ? site.jobs[j].granted : next[j]);
    }
    RC_ASSERT(total_w <= site.limits[0].value() * (1 + 1e-6));
  }
}

}  // namespace
}  // namespace perseus::service
