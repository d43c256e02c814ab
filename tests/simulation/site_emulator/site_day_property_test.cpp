// Properties of emulated days of random sites: limits hold once the reaction is over, work is conserved, the same seed
// gives the same day, and a pipeline that changes its plan is that of the plan checker.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>

#include "oracles/dice.h"
#include "oracles/instances.h"
#include "planning/baselines/best_of_all.h"
#include "planning/checker/plan_run.h"
#include "planning/model/reference_plans.h"
#include "planning/site/power_curve.h"
#include "simulation/site_emulator/day_feedback.h"
#include "simulation/site_emulator/day_figures.h"
#include "simulation/site_emulator/day_run.h"
#include "simulation/site_emulator/running_job.h"
#include "simulation/site_emulator/share_method.h"
#include "simulation/site_emulator/switched_iteration.h"

namespace perseus::site_emulator {
namespace {

using testing::Dice;
using testing::ShrinkingDice;

constexpr double kRounding = 1e-9;

struct RandomSite {
  std::deque<model::ComputationDag> dags;
  std::deque<model::Frontier> frontiers;
  SiteDay day;
  Watts all_max;
};

void add_kind(Dice& dice, RandomSite& made) {
  model::ComputationDag dag = testing::random_pipeline(dice, "1f1b", {3, 4, 4, 1e300});
  // No computation draws less than waiting: the bounds below hold of no others.
  dag.blocking_power = Watts(5);
  for (const model::Computation& computation : dag.computations) {
    for (const model::Measurement& option : dag.types[computation.type].options) {
      if (option.time == Seconds(0)) continue;
      const Watts of_one = option.energy / option.time / dag.accelerators[computation.rank];
      dag.blocking_power = std::min(dag.blocking_power, of_one);
    }
  }
  made.frontiers.push_back(baselines::plan_best_of_all(dag).value());
  made.dags.push_back(std::move(dag));
  made.day.kinds.push_back({&made.dags.back(), &made.frontiers.back()});
}

/// Jobs of one domain, without a limit, for some minutes.
void random_site(Dice& dice, RandomSite& made, int most_jobs) {
  const int kinds = dice.roll(1, 3);
  for (int k = 0; k < kinds; ++k) add_kind(dice, made);
  made.day.timed.site.domains = {{"site", -1}};
  const int jobs = dice.roll(1, most_jobs);
  for (int j = 0; j < jobs; ++j) {
    const int kind = dice.roll(0, kinds - 1);
    const double copies = dice.roll(1, 4);
    const model::ComputationDag& dag = made.dags[kind];
    const checker::PlanRun all_max = checker::run_plan(dag, model::all_maximum_clock(dag));
    made.day.kind_of.push_back(kind);
    made.day.copies.push_back(copies);
    made.day.timed.site.jobs.push_back(
        {.name = "job",
         .curve = site::power_curve_of(made.frontiers[kind], dag.total_blocking_power(), copies, 0),
         .weight = copies,
         .all_max = copies * (all_max.energy / all_max.makespan)});
    made.all_max += made.day.timed.site.jobs.back().all_max;
  }
  made.day.timed.end = Seconds(dice.roll(200, 900));
  made.day.timed.limits = {{{Seconds(0), model::kNoLimit}}};
  made.day.timed.due.resize(jobs);
  made.day.seed = static_cast<std::uint64_t>(dice.roll(0, 1000));
}

/// All day, over a meter's window; jobs cannot run at maximum clock.
void one_limit(Dice& dice, RandomSite& made) {
  made.day.timed.windows = {Seconds(dice.roll(10, 60))};
  made.day.timed.limits = {{{Seconds(0), dice.real(0.6, 1) * made.all_max}}};
}

/// A window, limits that fall and rise, a surprise.
void limit(Dice& dice, RandomSite& made) {
  const double end_s = made.day.timed.end.value();
  made.day.timed.windows = {Seconds(dice.roll(0, 60))};
  made.day.timed.limits = {{{Seconds(0), dice.real(0.8, 1.2) * made.all_max},
                            {Seconds(0.3 * end_s), dice.real(0.5, 1) * made.all_max},
                            {Seconds(0.5 * end_s), dice.real(0.7, 1.2) * made.all_max}}};
  made.day.surprises = {
      {0, Seconds(0.6 * end_s), Seconds(0.9 * end_s), dice.real(0.4, 0.9) * made.all_max, Seconds(30), std::nullopt}};
  if (dice.one_in(2)) made.day.surprises.clear();
}

model::SiteObjective any_objective(Dice& dice) {
  constexpr std::array kAll = {model::SiteObjective::throughput, model::SiteObjective::slowdown,
                               model::SiteObjective::max_min};
  return kAll[dice.roll(0, 2)];
}

double sum_j(const DayRun& run) {
  const auto& bins = run.domains.front().power_w;
  return std::accumulate(bins.begin(), bins.end(), 0.0) * run.bin_width.value();
}

/// Of two iterations of the slowest plans: the one in which a job falls, and the last before it.
Seconds longest_iterations(const RandomSite& made) {
  Seconds longest;
  for (const model::Frontier& frontier : made.frontiers) longest = std::max(longest, frontier.points.front().time);
  return 2 * longest;
}

/// What one iteration of each job can draw at most above waiting, whichever plans it mixes.
Joules iterations_above_waiting(const RandomSite& made) {
  Joules sum;
  for (std::size_t j = 0; j < made.day.kind_of.size(); ++j) {
    const model::ComputationDag& dag = made.dags[made.day.kind_of[j]];
    for (int i = 0; i < std::ssize(dag.computations); ++i) {
      Joules most;
      for (const model::Measurement& option : dag.type_of(i).options) {
        most = std::max(most, option.energy - dag.blocking_power_of(i) * option.time);
      }
      sum += made.day.copies[j] * most;
    }
  }
  return sum;
}

/// Changes of the plans that one window can see, with the iterations that were under way.
int changes_within(const DayRun& run, Seconds span) {
  std::ptrdiff_t most = 0;
  for (auto first = run.planned.begin() + 1; first < run.planned.end(); ++first) {
    const auto after = std::ranges::upper_bound(first, run.planned.end(), first->from + span, {}, &PlannedPower::from);
    most = std::max(most, after - first);
  }
  return static_cast<int>(most);
}

RC_GTEST_PROP(SiteDayProperty, TheLimitHoldsOnceFallsAreOver, ()) {
  ShrinkingDice dice;
  RandomSite made;
  random_site(dice, made, 8);
  limit(dice, made);
  const DayRun run = run_day(made.day, "optimum", any_objective(dice));
  const DayFigures figures = figures_of(made.day, run);
  // Where even waiting jobs exceed a limit, none can hold it.
  bool possible = true;
  for (std::size_t k = 0; k + 1 < run.planned.size(); ++k) {
    possible = possible && run.planned[k].used[0] + run.planned[k].guard[0] <= run.planned[k].limit[0];
  }
  RC_PRE(possible);
  // Iterations in which jobs fall may draw more than the new plans; a paced job saves nothing before its pause. They
  // are over soon, and so are the windows that see them.
  const double changes = static_cast<double>(run.planned.size() - 2);
  RC_ASSERT(figures.over[0].time <= changes * (longest_iterations(made) + *made.day.timed.windows[0]));
  if (run.falls + run.raises == 0) RC_ASSERT(figures.over[0].most == Watts(0));
  // A mean is at least that of waiting. So a job exceeds its means in a window by no more than the iterations that are
  // not whole in it draw above waiting: the first, the last, and the one under way at each change.
  const Seconds window = std::max(*made.day.timed.windows[0], run.bin_width);
  const int parts = 2 + changes_within(run, window + longest_iterations(made) + figures.guaranteed);
  RC_ASSERT(figures.over[0].most <= parts * (iterations_above_waiting(made) / window) * (1 + kRounding));
}

/// An iteration that a switch cut in two is neither plan's: if it counted, plans would change here.
RC_GTEST_PROP(SiteDayProperty, ReportsOfTruePlansChangeNothing, ()) {
  ShrinkingDice dice;
  RandomSite made;
  random_site(dice, made, 8);
  limit(dice, made);
  const DayRun open = run_day(made.day, "optimum", model::SiteObjective::slowdown);
  made.day.feedback.reports = true;
  const DayRun closed = run_day(made.day, "optimum", model::SiteObjective::slowdown);
  RC_ASSERT(closed.corrections == 0);
  // Times count from an iteration's beginning: of one at a rate near 0, which lasts 1e10 s, they are known to 2e-6 s.
  for (std::size_t bin = 0; bin < open.domains[0].power_w.size(); ++bin) {
    const double open_w = open.domains[0].power_w[bin];
    RC_ASSERT(std::abs(closed.domains[0].power_w[bin] - open_w) <= 1e-4 * (1 + open_w));
  }
}

RC_GTEST_PROP(SiteDayProperty, ReportsBringALimitBackThatBiasesExceed, ()) {
  ShrinkingDice dice;
  RandomSite made;
  random_site(dice, made, 8);
  one_limit(dice, made);
  made.day.draw_more = dice.real(-0.1, 0.15);
  made.day.bias = dice.real(0, 0.02);
  made.day.feedback.reports = true;
  const DayRun run = run_day(made.day, "optimum", any_objective(dice));
  for (const double factor : draw_factors(made.day)) RC_PRE(factor < site::PowerCorrection::kMost);
  bool possible = true;
  for (std::size_t k = 0; k + 1 < run.planned.size(); ++k) {
    possible = possible && run.planned[k].used[0] + run.planned[k].guard[0] <= run.planned[k].limit[0];
  }
  RC_PRE(possible);
  // Reports come with the first whole iteration, and every change of plans cuts some.
  const Seconds once =
      longest_iterations(made) + DayFeedback::kTick + 2 * made.day.delay.most + *made.day.timed.windows[0];
  RC_ASSERT(figures_of(made.day, run).over[0].time <= static_cast<double>(1 + run.corrections) * once);
  RC_ASSERT(run.corrections <= 4 * std::ssize(made.day.kind_of));
}

/// Of all jobs, each alone at full speed from its place on.
double plain_energy_j(const SiteDay& day) {
  const std::vector<double> places = draw_places(day);
  double sum = 0;
  for (std::size_t j = 0; j < places.size(); ++j) {
    const DayKind& kind = day.kinds[day.kind_of[j]];
    JobKind job(*kind.dag, kind.frontier->points.back().time);
    const auto energy = job.steady(job.way(kind.frontier->points.back().plan));
    const double begin_s = places[j] * energy->length_s(), end_s = begin_s + day.timed.end.value();
    const double whole = std::floor(end_s / energy->length_s());
    sum += day.copies[j] *
           (whole * energy->whole_j() + energy->at_s(end_s - whole * energy->length_s()) - energy->at_s(begin_s));
  }
  return sum;
}

RC_GTEST_PROP(SiteDayProperty, WithoutALimitItIsTheSumOfItsJobs, ()) {
  ShrinkingDice dice;
  RandomSite made;
  random_site(dice, made, 6);
  for (const std::string_view method : share_method_names()) {
    const DayRun run = run_day(made.day, method, model::SiteObjective::throughput);
    RC_ASSERT(run.falls == 0 && run.raises == 0);
    const bool own_plans = method == "optimum" || method == "equal-shares";
    if (own_plans) {
      const double expected_j = plain_energy_j(made.day);
      RC_ASSERT(std::abs(sum_j(run) - expected_j) <= kRounding * (1 + expected_j));
    }
    for (const double rate : run.rate) RC_ASSERT(rate > 0 && rate < 1 + kRounding);
    if (own_plans) {
      for (const double rate : run.rate) RC_ASSERT(std::abs(rate - 1) < kRounding);
    }
  }
}

RC_GTEST_PROP(SiteDayProperty, IterationsAreConserved, ()) {
  ShrinkingDice dice;
  RandomSite made;
  add_kind(dice, made);
  JobKind kind(made.dags[0], made.frontiers[0].points.back().time);
  std::vector<int> ways;
  for (const model::FrontierPoint& point : made.frontiers[0].points) ways.push_back(kind.way(point.plan));
  ways.push_back(kind.paced_way(made.frontiers[0].points.front().plan, 0.3));
  RunningJob job(kind, ways[dice.roll(0, static_cast<int>(ways.size()) - 1)], dice.real(0, 0.999));
  double begun_s = std::numeric_limits<double>::quiet_NaN(), ended_s = 0, iterations = 0;
  const RunningJob::Sink sink = [&](const IterationRun& run) {
    if (std::isnan(begun_s)) begun_s = ended_s = run.start_s;
    RC_ASSERT(std::abs(run.start_s - ended_s) < 1e-6);  // no gap
    ended_s = run.start_s + run.period_s * static_cast<double>(run.times);
    iterations += static_cast<double>(run.times);
  };
  double now_s = 0;
  for (int grant = 0; grant < 10; ++grant) {
    now_s += dice.real(0, 30);
    job.advance_to(Seconds(now_s), sink);
    const int way = ways[dice.roll(0, static_cast<int>(ways.size()) - 1)];
    if (way == job.followed()) continue;
    if (kind.mean(way) > kind.mean(job.followed())) {
      job.raise_to(way, Seconds(now_s + dice.real(0, 2)));
      continue;
    }
    std::vector<double> from_s;
    for (int r = 0; r < made.dags[0].num_ranks(); ++r) from_s.push_back(now_s + dice.real(0, 2));
    const Seconds follows = job.fall_to(way, from_s);
    RC_ASSERT(follows >= Seconds(*std::ranges::max_element(from_s)));
    RC_ASSERT(follows <= Seconds(*std::ranges::max_element(from_s)) +
                             std::max(kind.longest_computation(ways.back()), kind.longest_computation(ways.front())));
  }
  job.advance_to(Seconds(now_s + 100), sink);
  const double part_over = -begun_s;
  RC_ASSERT(part_over >= 0);
  // Work is that of the iterations handed over, of the one under way, less what was over at 0 s.
  const double work = job.work_s(Seconds(now_s + 100)) / kind.full_speed().value();
  RC_ASSERT(work > iterations - 1 - kRounding && work < iterations + 1 + kRounding);
}

/// A pause that a raise shortens: the iteration before it counts too.
RC_GTEST_PROP(SiteDayProperty, NoIterationDrawsMoreThanItsGrants, ()) {
  ShrinkingDice dice;
  RandomSite made;
  add_kind(dice, made);
  JobKind kind(made.dags[0], made.frontiers[0].points.back().time);
  const model::FrontierPoint& slowest = made.frontiers[0].points.front();
  const double slowest_rate = made.frontiers[0].points.back().time / slowest.time;
  const auto way_at = [&](double part) { return kind.paced_way(slowest.plan, part * slowest_rate); };
  int way = way_at(dice.real(0.05, 0.5));
  RunningJob job(kind, way, dice.real(0, 0.999));
  Watts most = kind.mean(way);
  const RunningJob::Sink sink = [&](const IterationRun& run) {
    const Watts mean = Joules(run.energy->at_s(run.period_s)) / Seconds(run.period_s);
    RC_ASSERT(mean <= most * (1 + kRounding));
  };
  double now_s = 0;
  for (int grant = 0; grant < 5; ++grant) {
    now_s += dice.real(0, 3) * kind.steady(way)->length_s();
    job.advance_to(Seconds(now_s), sink);
    const int next = way_at(dice.real(0.05, 1));
    if (kind.mean(next) <= kind.mean(job.followed())) continue;
    job.raise_to(way = next, Seconds(now_s));
    most = kind.mean(next);
  }
  job.advance_to(Seconds(now_s + 3 * kind.steady(way)->length_s()), sink);
}

RC_GTEST_PROP(SiteDayProperty, TheSameSeedGivesTheSameDay, ()) {
  ShrinkingDice dice;
  RandomSite made;
  random_site(dice, made, 5);
  limit(dice, made);
  made.day.bias = 0.03;
  const auto run = [&] { return run_day(made.day, "optimum", model::SiteObjective::slowdown); };
  const DayRun first = run();
  RC_ASSERT(first.domains.front().power_w == run().domains.front().power_w);
  made.day.seed += 1;
  RC_ASSERT(first.domains.front().power_w != run().domains.front().power_w);
}

RC_GTEST_PROP(SiteDayProperty, MoreWattsAreNoLessThroughput, ()) {
  ShrinkingDice dice;
  RandomSite made;
  random_site(dice, made, 8);
  limit(dice, made);
  const auto throughput = [&] {
    return figures_of(made.day, run_day(made.day, "optimum", model::SiteObjective::throughput)).throughput;
  };
  const double less = throughput();
  for (model::LimitStep& step : made.day.timed.limits[0]) step.limit = 1.1 * step.limit;
  for (Surprise& surprise : made.day.surprises) surprise.limit = 1.1 * surprise.limit;
  // Few jobs have few points, and raises wait for the next iteration.
  RC_ASSERT(throughput() >= less - 0.05);
}

RC_GTEST_PROP(SwitchedIterationProperty, WithOnePlanItIsTheRunOfTheChecker, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice, {3, 5, 5, 1e300});
  model::Plan plan;
  for (std::size_t i = 0; i < dag.computations.size(); ++i) {
    const auto options = static_cast<int>(dag.type_of(static_cast<int>(i)).options.size());
    plan.push_back(static_cast<std::uint16_t>(dice.roll(0, options - 1)));
  }
  const checker::PlanRun expected = checker::run_plan(dag, plan);
  const std::array plans{PlanFrom{&plan, {}}};
  const SwitchedIteration run = IterationRunner(dag).run(plans);
  RC_ASSERT(std::abs((run.makespan - expected.makespan).value()) <= kRounding);
  const EnergyOverTime energy(run.power, dag.total_blocking_power(), run.makespan);
  double expected_j = expected.energy.value();
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (expected.end[i] <= expected.start[i]) expected_j -= expected.energy_of[i].value();  // of no time
  }
  RC_ASSERT(std::abs(energy.whole_j() - expected_j) <= kRounding * (1 + expected.energy.value()));
}

}  // namespace
}  // namespace perseus::site_emulator
