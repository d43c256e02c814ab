#include "server/profiling/expected_frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "io/formats/plan_file.h"
#include "planning/checker/plan_run.h"
#include "planning/checker/profile_match.h"
#include "planning/checker/verify_plan.h"
#include "planning/model/build_dag.h"
#include "planning/model/default_plan.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/exact.h"
#include "planning/planner/realize.h"
#include "server/profiling/curve_family.h"

namespace perseus::profiling {
namespace {

constexpr model::PipelineCosts kCosts{Watts(60), {}, false};

model::Profile balanced_profile(int stages) {
  model::Profile profile;
  profile.accelerators.assign(static_cast<std::size_t>(stages), 1);
  for (int stage = 0; stage < stages; ++stage) {
    for (const auto& [instruction, work] : {std::pair{"forward", 40.0}, std::pair{"backward", 80.0}}) {
      model::ProfileEntry entry{stage, instruction, {}};
      for (int mhz = 1400; mhz >= 900; mhz -= 100) {
        const double time_s = work * (1 + 0.02 * stage) / mhz, power_w = 90 + 250 * std::pow(mhz / 1400.0, 2.4);
        entry.measurements.push_back({Megahertz(mhz), Seconds(time_s), Joules(time_s * power_w), {}, {}, 1});
      }
      profile.entries.push_back(std::move(entry));
    }
  }
  return profile;
}

/// Draws in pairs whose mean is the profile.
std::vector<model::Profile> draws_of(const model::Profile& profile, double spread, int pairs) {
  std::mt19937_64 engine(3);
  std::vector<model::Profile> draws;
  for (int pair = 0; pair < pairs; ++pair) {
    model::Profile up = profile, down = profile;
    for (std::size_t e = 0; e < profile.entries.size(); ++e) {
      for (std::size_t i = 0; i < profile.entries[e].measurements.size(); ++i) {
        const double time = spread * standard_normal(engine), energy = spread * standard_normal(engine);
        model::Measurement &higher = up.entries[e].measurements[i], &lower = down.entries[e].measurements[i];
        higher.time = (1 + time) * higher.time, lower.time = (1 - time) * lower.time;
        higher.energy = (1 + energy) * higher.energy, lower.energy = (1 - energy) * lower.energy;
      }
    }
    draws.push_back(std::move(up));
    draws.push_back(std::move(down));
  }
  return draws;
}

struct Planned {
  model::Schedule schedule = model::make_schedule("1f1b", {4, 6, 1}).value();
  model::Profile profile = balanced_profile(4);
  std::vector<model::Profile> draws = draws_of(profile, 0.02, 8);
  model::ComputationDag dag = model::build_dag(profile, schedule, kCosts).value();
  model::Frontier by_means = planner::plan_exact(dag);
  StopCheck never = {};
  DrawnTypes drawn = drawn_types(draws, std::nullopt, schedule, kCosts, never).value();
  model::Frontier expected = expected_frontier(dag, drawn, by_means, never).value();

  [[nodiscard]] Seconds mean_time(const model::Plan& plan) const {
    Seconds sum;
    for (const model::Profile& draw : draws) {
      const model::ComputationDag one = model::build_dag(draw, schedule, kCosts).value();
      sum += planner::Realizer(one).realize(plan).time;
    }
    return sum / static_cast<double>(draws.size());
  }
};

TEST(ExpectedFrontier, WithoutDrawsIsTheFrontier) {
  Planned p;
  const model::Frontier same = expected_frontier(p.dag, {}, p.by_means, p.never).value();
  EXPECT_EQ(formats::format_plan_file(p.dag, same), formats::format_plan_file(p.dag, p.by_means));
}

TEST(ExpectedFrontier, TimesAreMeansOverTheDrawsAndNeverBelowThoseOfTheMeans) {
  const Planned p;
  ASSERT_GT(p.expected.points.size(), 10U);
  const auto check = [&](const model::Plan& plan, Seconds time, const model::ProfileNoise& noise) {
    EXPECT_NEAR(time / p.mean_time(plan), 1, 1e-12);
    EXPECT_GE(noise.lateness.value(), -1e-12);
    EXPECT_GT(noise.time_stddev, Seconds(0));
    EXPECT_GT(noise.energy_stddev, Joules(0));
  };
  for (const model::FrontierPoint& point : p.expected.points) {
    EXPECT_NEAR(point.noise.saving_stddev, saving_stddev(p.dag, p.drawn, point.plan), 1e-12);
    check(point.plan, point.time, point.noise);
    EXPECT_NEAR(point.energy / (point.effective_energy + p.dag.total_blocking_power() * point.time), 1, 1e-12);
    EXPECT_LE(point.bound, (1 + 1e-12) * point.energy);
  }
  const model::Plan highest = model::all_maximum_clock(p.dag);
  const model::ProfileNoise& at_highest = p.expected.maximum_clock_noise;
  check(highest, planner::Realizer(p.dag).realize(highest).time + at_highest.lateness, at_highest);
  // A plan that makes all paths equally long is later than maximum clock, where one stage is the slowest.
  EXPECT_GT(p.expected.points.back().noise.lateness + p.expected.points[p.expected.points.size() / 2].noise.lateness,
            at_highest.lateness);
  for (std::size_t i = 1; i < p.expected.points.size(); ++i) {
    EXPECT_LT(p.expected.points[i].time, p.expected.points[i - 1].time);
    EXPECT_GT(p.expected.points[i].effective_energy, p.expected.points[i - 1].effective_energy);
  }
}

TEST(ExpectedFrontier, HasAPlanNoSlowerThanMaximumClock) {
  Planned p;
  const Seconds t_max =
      planner::Realizer(p.dag).realize(model::all_maximum_clock(p.dag)).time + p.expected.maximum_clock_noise.lateness;
  model::Frontier late = p.by_means;
  std::erase_if(late.points, [&](const model::FrontierPoint& point) { return p.mean_time(point.plan) <= t_max; });
  ASSERT_FALSE(late.points.empty());
  const model::Frontier expected = expected_frontier(p.dag, p.drawn, late, p.never).value();
  EXPECT_LE(expected.points.back().time, (1 + 1e-9) * t_max);
  const auto is_new = [&](const model::FrontierPoint& point) {
    return std::ranges::find(late.points, point.plan, &model::FrontierPoint::plan) == late.points.end();
  };
  EXPECT_GE(std::ranges::count_if(expected.points, is_new), 1);
  EXPECT_NE(expected.points.back().plan, model::all_maximum_clock(p.dag)) << "something between saves, and is in time";
  const checker::Verification verified = checker::verify_frontier(p.dag, expected, {}, {});
  EXPECT_TRUE(verified.ok()) << verified.findings[0].message;
}

/// Where every plan may be a little late in some draw, maximum clock alone kept T_max: nothing was saved.
TEST(ExpectedFrontier, SavesWithoutBeingLateInAnyDraw) {
  const Planned p;
  const planner::Realizer::Outcome highest = planner::Realizer(p.dag).realize(model::all_maximum_clock(p.dag));
  const Watts waiting = p.dag.total_blocking_power();
  const Seconds t_max = highest.time + p.expected.maximum_clock_noise.lateness;
  const auto in_time = std::ranges::find_if(
      p.expected.points, [&](const model::FrontierPoint& point) { return point.time <= model::kSameTime * t_max; });
  ASSERT_NE(in_time, p.expected.points.end());
  EXPECT_LT(in_time->energy, 0.97 * (highest.effective_energy + waiting * t_max));
  EXPECT_LE(p.mean_time(in_time->plan), model::kSameTime * p.mean_time(model::all_maximum_clock(p.dag)));
}

/// A clock slower and dearer than a lower one was where raising and lowering ended.
TEST(ExpectedFrontier, ClocksThatOthersBeatAreSkipped) {
  model::Profile with = balanced_profile(4);
  for (model::ProfileEntry& entry : with.entries) {
    model::Measurement& beaten = entry.measurements[3];
    beaten.time = 1.2 * beaten.time;
    beaten.energy = 1.2 * beaten.energy;
  }
  const std::vector<model::Profile> draws = draws_of(with, 0.02, 8);
  const auto least_j = [](Planned&& p) {
    const Seconds t_max = p.mean_time(model::all_maximum_clock(p.dag));
    const model::Plan plan(p.dag.computations.size(), 2);
    const planner::Realizer::Outcome late = planner::Realizer(p.dag).realize(plan);
    p.by_means.points = {{late.time, late.effective_energy, late.effective_energy, {}, plan}};
    const model::Frontier expected = expected_frontier(p.dag, p.drawn, p.by_means, p.never).value();
    return expected.points[model::default_point(expected, t_max)].energy;
  };
  model::Profile without = with;
  std::vector<model::Profile> draws_without = draws;
  const auto take_away = [](model::Profile& profile) {
    for (model::ProfileEntry& entry : profile.entries) entry.measurements.erase(entry.measurements.begin() + 3);
  };
  take_away(without);
  std::ranges::for_each(draws_without, take_away);
  const Joules one = least_j({.profile = with, .draws = draws});
  EXPECT_NEAR(one / least_j({.profile = without, .draws = draws_without}), 1, 1e-6);
}

/// That no draw is late is more than "no slower" asks for: what is left of T_max saves energy.
TEST(ExpectedFrontier, NoClockOfThePlanThatKeepsMaximumClocksTimeCanBeLower) {
  const Planned p;
  const Seconds t_max =
      planner::Realizer(p.dag).realize(model::all_maximum_clock(p.dag)).time + p.expected.maximum_clock_noise.lateness;
  const auto in_time = std::ranges::find_if(
      p.expected.points, [&](const model::FrontierPoint& point) { return point.time <= model::kSameTime * t_max; });
  ASSERT_NE(in_time, p.expected.points.end());
  for (std::size_t i = 0; i < in_time->plan.size(); ++i) {
    model::Plan lower = in_time->plan;
    if (++lower[i] == p.dag.type_of(static_cast<int>(i)).options.size()) continue;
    const planner::Realizer::Outcome before = planner::Realizer(p.dag).realize(in_time->plan),
                                     after = planner::Realizer(p.dag).realize(lower);
    if (after.effective_energy >= before.effective_energy) continue;
    EXPECT_GT(p.mean_time(lower), model::kSameTime * t_max) << i;
  }
}

TEST(ExpectedFrontier, IsWrittenToThePlanFileAndVerifies) {
  Planned p;
  const Result<formats::PlanFile> file =
      formats::parse_plan_file(formats::format_plan_file(p.dag, p.expected), "plans.json");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->frontier.maximum_clock_noise, p.expected.maximum_clock_noise);
  for (std::size_t i = 0; i < p.expected.points.size(); ++i) {
    EXPECT_EQ(file->frontier.points[i].noise, p.expected.points[i].noise);
  }
  for (const checker::Finding& finding : checker::verify_frontier(file->dag, file->frontier).findings)
    ADD_FAILURE() << finding.message;
  EXPECT_EQ(checker::check_expected(p.dag, p.expected, p.profile, p.draws, 8), std::vector<std::string>{});

  // A claim that is off by 0.1 % of the time, a verifier without the draws, and a time without its expected delay.
  model::Frontier wrong = p.expected;
  wrong.points[0].noise.lateness += 1e-3 * wrong.points[0].time;
  EXPECT_EQ(checker::check_expected(p.dag, wrong, p.profile, p.draws, 8).size(), 1U);
  model::Frontier surer = p.expected;
  surer.points[0].noise.saving_stddev /= 2;
  EXPECT_EQ(checker::check_expected(p.dag, surer, p.profile, p.draws, 8).size(), 1U);
  EXPECT_EQ(checker::check_expected(p.dag, p.expected, p.profile, {}, 8).size(), 1U);
  EXPECT_FALSE(checker::verify_frontier(p.dag, wrong).ok());
  // Plans without such claims pass.
  EXPECT_TRUE(checker::check_expected(p.dag, p.by_means, p.profile, p.draws, 8).empty());
}

TEST(ExpectedFrontier, TheSpreadOfASavingIsThatOfBothEnergiesInTheSameDraw) {
  const Planned p;
  const model::Plan& plan = p.expected.points[p.expected.points.size() / 2].plan;
  double sum = 0, squares = 0;
  for (const model::Profile& draw : p.draws) {
    const model::ComputationDag dag = model::build_dag(draw, p.schedule, kCosts).value();
    const auto energy = [&](const model::Plan& one) { return checker::PlanRunner(dag).run(one).energy; };
    const double share = energy(plan) / energy(model::all_maximum_clock(dag));
    sum += share;
    squares += share * share;
  }
  const auto count = static_cast<double>(p.draws.size());
  const double expected = std::sqrt((squares - sum * sum / count) / (count - 1));
  EXPECT_NEAR(saving_stddev(p.dag, p.drawn, plan) / expected, 1, 1e-6);
  // A plan compared with itself: the errors cancel.
  EXPECT_NEAR(saving_stddev(p.dag, p.drawn, model::all_maximum_clock(p.dag)), 0, 1e-12);
}

TEST(ExpectedFrontier, CanBeStopped) {
  Planned p;
  StopCheck now([] { return true; });
  EXPECT_EQ(expected_frontier(p.dag, p.drawn, p.by_means, now).error().code, ErrorCode::unavailable);
  EXPECT_EQ(drawn_types(p.draws, std::nullopt, p.schedule, kCosts, now).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace perseus::profiling
