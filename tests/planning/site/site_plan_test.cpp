// Curves of jobs, limits of accelerators, ramps, deadlines and what-if curves of small sites, by hand.
#include "planning/site/site_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planning/site/allocate.h"
#include "planning/site/power_curve.h"
#include "planning/site/site_limits.h"

namespace perseus::site {
namespace {

using model::LimitStep;
using ::testing::DoubleNear;
using ::testing::SizeIs;

model::FrontierPoint point(double time_s, double energy_j) {
  model::FrontierPoint p{};
  p.time = Seconds(time_s);
  p.energy = Joules(energy_j);
  return p;
}

/// 300 W at full speed, 200 W at 0.8 of it.
model::Frontier two_points() {
  model::Frontier frontier;
  frontier.points = {point(1.25, 250), point(1, 300)};
  return frontier;
}

/// 100 W at half speed, 300 W at full speed.
model::SiteJob job(const std::string& name, int domain = 0, double least_rate = 0.5) {
  return {.name = name,
          .curve = {{{Watts(100), 0.5, 0, false}, {Watts(200), 0.8, 1, false}, {Watts(300), 1, 2, false}}},
          .weight = 1,
          .least_rate = least_rate,
          .domain = domain,
          .all_max = Watts(400)};
}

TEST(PowerCurve, APacedJobDrawsItsBlockingPowerAtRateZero) {
  const model::PowerCurve curve = power_curve_of(two_points(), Watts(50), 2, 0.3);
  EXPECT_EQ(curve.points.front().power, Watts(100));
  EXPECT_EQ(curve.points.front().rate, 0);
  EXPECT_EQ(curve.points.back().power, Watts(600));
  EXPECT_EQ(curve.points.back().plan, 1);
  const auto floor = std::ranges::find(curve.points, 0.3, &model::PowerPoint::rate);
  ASSERT_NE(floor, curve.points.end());
  EXPECT_TRUE(floor->paced);
  EXPECT_NEAR(floor->power.value(), 2 * (50 + 0.3 / 0.8 * 150), 1e-9);
}

TEST(PowerCurve, APacedJobUsesItsWattsAtAnyRate) {
  const auto metered = [](double rate) { return Watts(50 + rate / 0.8 * 150); };
  model::Site site;
  site.domains = {{"site", -1}};
  site.jobs.push_back(job("paced", 0, 0));
  site.jobs[0].curve = power_curve_of(two_points(), Watts(50), 1, 0);
  Allocator allocator(site, model::SiteObjective::throughput);
  for (double rate = 0.0057; rate < 0.8; rate += 0.0031) {
    const int chosen = allocator.allocate(std::vector{metered(rate)}).chosen[0];
    EXPECT_LE(site.jobs[0].curve.points[chosen].rate, rate * (1 + 1e-9));
    EXPECT_GE(site.jobs[0].curve.points[chosen].rate, 0.99 * rate) << rate;
  }
}

TEST(PowerCurve, APlanThatDrawsMoreThanAFasterOneIsLeftOut) {
  model::Frontier frontier = two_points();
  frontier.points.insert(frontier.points.begin() + 1, point(1.2, 1.2 * 310));
  const model::PowerCurve curve = power_curve_of(frontier, Watts(50), 1, 0);
  for (const model::PowerPoint& p : curve.points) EXPECT_NE(p.plan, 1);
}

TEST(SiteLimits, CoolingHostsAndSuppliesComeOffAMeteredLimit) {
  model::SiteDescription site;
  site.pue = 1.25;
  site.supply_efficiency = 0.9;
  site.node_overhead = Watts(100);
  site.gpus_per_node = 8;
  site.domains = {{"site", -1, {}, {}, Watts(10)}, {"row", 0, {}, {}, Watts(20)}};
  const std::vector<Watts> constants = constants_of(site, std::vector{0, 9});
  EXPECT_EQ(constants[1], Watts(220));  // two nodes and a switch
  EXPECT_EQ(constants[0], Watts(230));
  EXPECT_EQ(for_accelerators(Watts(1250), site, constants[1]), 0.9 * Watts(780));
  EXPECT_EQ(for_accelerators(Watts(10), site, constants[1]), Watts(0));
  EXPECT_EQ(left_for_accelerators(Watts(10), site, constants[1]), 0.9 * Watts(-212));
  EXPECT_EQ(for_accelerators(model::kNoLimit, site, constants[1]), model::kNoLimit);
}

TEST(SiteLimits, JobsOfANodeOrMoreShareNoNodes) {
  model::SiteDescription site;
  site.node_overhead = Watts(100);
  site.gpus_per_node = 8;
  site.domains = {{"site", -1, {}, {}, Watts(0)}};
  const auto hosts = [&](const std::vector<int>& jobs) {
    int gpus = 0;
    for (const int job : jobs) gpus += in_own_nodes(job, site);
    return constants_of(site, std::vector{gpus})[0] / Watts(100);
  };
  EXPECT_EQ(hosts({12, 12}), 4) << "24 GPUs are in 3 nodes, but neither job has one of the other's";
  EXPECT_EQ(hosts({8, 16}), 3);
  EXPECT_EQ(hosts({1, 2, 4}), 1) << "small jobs share a node";
  EXPECT_EQ(hosts({1, 2, 4, 2, 12}), 4);
  EXPECT_EQ(hosts({}), 0);
}

TEST(SiteLimits, ARampBeginsBeforeTheFallAndEndsAfterTheRise) {
  const std::vector<LimitStep> limits = {{Seconds(0), Watts(100)}, {Seconds(50), Watts(60)}, {Seconds(80), Watts(100)}};
  const std::vector<LimitStep> steps = ramped(limits, {2, 4}, Seconds(200), Seconds(5));
  const auto at = [&](double time_s) {
    Watts limit;
    for (const LimitStep& step : steps) {
      if (step.from <= Seconds(time_s)) limit = step.limit;
    }
    return limit.value();
  };
  EXPECT_THAT(at(0), DoubleNear(100, 1e-6));
  EXPECT_THAT(at(30), DoubleNear(90, 1e-6));  // the least of 30 to 35 s: 60 + 2 * 15
  EXPECT_THAT(at(45), DoubleNear(60, 1e-6));
  EXPECT_THAT(at(79), DoubleNear(60, 1e-6));
  EXPECT_THAT(at(85), DoubleNear(80, 1e-6));
  EXPECT_THAT(at(90), DoubleNear(100, 1e-6));
  for (std::size_t k = 1; k < steps.size(); ++k) EXPECT_LT(steps[k - 1].from, steps[k].from);
}

TEST(SitePlan, EveryIntervalKeepsItsLimit) {
  const TimedSite timed{{{{"site", -1}}, {job("a"), job("b")}},
                        {{{Seconds(0), Watts(600)}, {Seconds(10), Watts(400)}, {Seconds(20), Watts(250)}}},
                        {std::nullopt, std::nullopt},
                        Seconds(30)};
  const std::vector<Interval> intervals = plan_site(timed, model::SiteObjective::throughput);
  ASSERT_THAT(intervals, SizeIs(3));
  EXPECT_EQ(intervals[0].used[0], Watts(600));
  EXPECT_EQ(intervals[1].used[0], Watts(400));
  EXPECT_EQ(intervals[2].used[0], Watts(200));
  EXPECT_EQ(intervals[2].until, Seconds(30));
}

TEST(SitePlan, AWindowKeepsAGuardBelowItsLimit) {
  TimedSite timed{{{{"site", -1}}, {job("a"), job("b")}}, {{{Seconds(0), Watts(410)}}}, {{}, {}}, Seconds(10)};
  timed.windows = {Seconds(60)};
  // 8 W each at any point: 400 W leave too little, 300 W enough.
  timed.swing_of = [](std::size_t, int, Seconds window) { return WindowSwing{Watts(480) / window.value(), 1000}; };
  const std::vector<Interval> intervals = plan_site(timed, model::SiteObjective::throughput);
  EXPECT_EQ(intervals[0].guards[0], Watts(16));
  EXPECT_EQ(intervals[0].guarded_limits()[0], Watts(394));
  EXPECT_EQ(intervals[0].used[0], Watts(300));
}

TEST(SitePlan, ADeadlineRaisesTheFloorByTheRemainingWork) {
  // Without it, b would have half speed in both intervals: 9 s of work in 10 s need 0.9, so full speed.
  const TimedSite timed{{{{"site", -1}}, {job("a"), job("b")}},
                        {{{Seconds(0), Watts(400)}}},
                        {std::nullopt, DueWork{Seconds(10), Seconds(9)}},
                        Seconds(20)};
  const std::vector<Interval> intervals = plan_site(timed, model::SiteObjective::throughput);
  ASSERT_THAT(intervals, SizeIs(2));
  EXPECT_EQ(intervals[0].least_rates[1], 0.9);
  EXPECT_EQ(timed.site.jobs[1].curve.points[intervals[0].allocation.chosen[1]].rate, 1);
  EXPECT_EQ(intervals[1].least_rates[1], 0.5);
}

TEST(SitePlan, WhereFloorsDoNotFitTheMostTolerantJobsGiveFirst) {
  model::Site site{{{"site", -1}}, {job("strict", 0, 1), job("tolerant", 0, 0.5)}};
  for (model::SiteJob& one : site.jobs) one.curve.points.insert(one.curve.points.begin(), {Watts(40), 0, 0, true});
  const TimedSite timed{site, {{{Seconds(0), Watts(350)}}}, {std::nullopt, std::nullopt}, Seconds(0)};
  const Interval only = plan_site(timed, model::SiteObjective::slowdown).front();
  EXPECT_EQ(only.allocation.missing[0], Watts(50));
  EXPECT_EQ(site.jobs[0].curve.points[only.allocation.chosen[0]].rate, 1);
  EXPECT_EQ(site.jobs[1].curve.points[only.allocation.chosen[1]].rate, 0);
}

TEST(SitePlan, WattsByWhichConstantsExceedALimitAreMissingToo) {
  const auto missing_at = [](double limit_w) {
    const TimedSite timed{{{{"site", -1}}, {job("a")}}, {{{Seconds(0), Watts(limit_w)}}}, {std::nullopt}, Seconds(0)};
    const Interval only = plan_site(timed, model::SiteObjective::slowdown).front();
    EXPECT_EQ(only.limits[0], Watts(std::max(0.0, limit_w)));
    return only.allocation.missing[0];
  };
  EXPECT_GT(missing_at(0), Watts(0));
  EXPECT_EQ(missing_at(-70), missing_at(0) + Watts(70));
  EXPECT_EQ(missing_at(20), missing_at(0) - Watts(20));
}

TEST(SitePlan, AWattHasNoPriceInsideADomainWhoseJobsAllWait) {
  const model::Site site{{{"site", -1}, {"row", 0}}, {job("a", 1), job("b", 1)}};
  const auto prices_at = [&](double limit_w) {
    const TimedSite timed{
        site, {{{Seconds(0), Watts(limit_w)}}, {{Seconds(0), Watts(400)}}}, {std::nullopt, std::nullopt}, Seconds(0)};
    return plan_site(timed, model::SiteObjective::throughput).front().allocation.price;
  };
  EXPECT_GT(prices_at(600)[1], 0);
  EXPECT_EQ(prices_at(100), (std::vector<double>{0, 0}));
}

TEST(SitePlan, WhatIfCurvesCountOnlyTheJobsOfTheDomain) {
  const model::Site site{{{"site", -1}, {"row", 0}}, {job("a"), job("b", 1)}};
  const std::vector fractions = {1.0, 0.5};
  const std::vector<WhatIf> curve = throughput_over_watts(site, model::SiteObjective::throughput, 1, fractions);
  ASSERT_THAT(curve, SizeIs(2));
  EXPECT_EQ(curve[0].limit, Watts(400));
  EXPECT_EQ(curve[0].best.throughput, 1);
  EXPECT_EQ(curve[1].best.throughput, 0.8);
  EXPECT_NEAR(headroom_at(site, 0.8), 1.0, 1e-12);  // 800 W feed twice as many at 200 W each
}

}  // namespace
}  // namespace perseus::site
