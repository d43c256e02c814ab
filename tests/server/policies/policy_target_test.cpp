#include "server/policies/policy_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/jobs/event.h"
#include "server/jobs/event_text.h"

namespace perseus::policies {
namespace {

using ::testing::HasSubstr;

/// Three points: 1, 1.5 and 2 s. Waiting draws 100 W. Effective energies: 200, 180 and 160 J; total energies: 300,
/// 330 and 360 J, so the fastest needs least. `each_saves`: 80 J more per point, so that slower plans have lower
/// totals: 300, 270 and 240 J.
jobs::CharacterizedPipeline three_points(double each_saves_j = 20) {
  jobs::CharacterizedPipeline pipeline;
  pipeline.dag.blocking_power = Watts(100);
  pipeline.dag.accelerators = {1};
  pipeline.all_max_time = Seconds(1);
  for (const auto& [time, steps] : {std::pair{2.0, 2}, {1.5, 1}, {1.0, 0}}) {
    const double effective = 200 - steps * each_saves_j;
    model::FrontierPoint point{Seconds(time), Joules(effective + 100 * time), Joules(effective), Joules(0), {}};
    pipeline.frontier.points.push_back(point);
  }
  return pipeline;
}

class PolicyTest : public ::testing::Test {
 protected:
  Target target(double t_straggler = 0, double now_s = 0) {
    return policy_target(policies_, groups_, 0, {Seconds(t_straggler), Seconds(1), default_slowdown_}, now_s);
  }
  void set(const jobs::Policy& policy) { policies_[std::string(jobs::kind_of(policy))] = policy; }

  jobs::CharacterizedPipeline pipeline_ = three_points(), saving_ = three_points(80);
  std::vector<PolicyScope> groups_{{&pipeline_, 1, 2, 0}};  // two pipelines
  std::map<std::string, jobs::Policy> policies_;
  double default_slowdown_ = 0;
};

TEST_F(PolicyTest, NoneLeavesTheTimeToStragglers) {
  EXPECT_EQ(target(1.2).time, Seconds(1.2));
  EXPECT_EQ(target(1.2).reason, "");
  EXPECT_EQ(target(3).time, Seconds(3)) << "T' is waited for anyway, past T* too";
}

TEST_F(PolicyTest, ATextSaysTheToleranceInPercentWithAndWithoutASignal) {
  EXPECT_EQ(jobs::text_of(jobs::Policy(jobs::MaxSlowdown{1.03, {}, {}, ""})), "up to 3 % slower than maximum clock");
  EXPECT_EQ(jobs::text_of(jobs::Policy(jobs::MaxSlowdown{1.03, 80, {{0, 95}}, "EUR"})),
            "up to 3 % slower than maximum clock while the signal is above 80 EUR");
}

TEST_F(PolicyTest, AToleranceAllowsOnlyPlansOfLessTotalEnergy) {
  // 60 % slower is tolerated; 50 % slower would need 330 J instead of 300 J.
  set(jobs::MaxSlowdown{1.6, {}, {}, ""});
  EXPECT_EQ(target().time, Seconds(1));
  EXPECT_EQ(target().reason, "up to 60 % slower than maximum clock; slower than 1 s saves nothing");
  EXPECT_EQ(target(1.2).time, Seconds(1.2)) << "the straggler's time, and no more";
  EXPECT_EQ(target(1.2).reason, "");
  groups_[0].pipeline = &saving_;
  EXPECT_EQ(target().time, Seconds(1.6)) << "270 J instead of 300 J";
  EXPECT_EQ(target().reason, "up to 60 % slower than maximum clock");
  set(jobs::MaxSlowdown{9, {}, {}, ""});
  EXPECT_EQ(target().time, Seconds(2)) << "T*";
  EXPECT_EQ(target().reason, "up to 800 % slower than maximum clock; slower than 2 s saves nothing");
}

TEST_F(PolicyTest, AToleranceIncludesThePowerOfStragglers) {
  // From 1.2 s to 1.5 s: the other pipeline saves 80 J and draws 30 J more; five stragglers need 150 J more for
  // waiting.
  groups_ = {{&saving_, 1, 1, 5}};
  set(jobs::MaxSlowdown{1.6, {}, {}, ""});
  EXPECT_EQ(target(1.2).time, Seconds(1.2));
  groups_ = {{&saving_, 1, 1, 1}};
  EXPECT_EQ(target(1.2).time, Seconds(1.6));
}

TEST_F(PolicyTest, PipelinesThatDifferHaveTheTimeOfLeastEnergyOfAll) {
  groups_ = {{&pipeline_, 1, 1, 0}, {&saving_, 1, 1, 0}};  // 600 J; 330 + 270 J
  set(jobs::MaxSlowdown{1.6, {}, {}, ""});
  EXPECT_EQ(target().time, Seconds(1)) << "of equal energies the faster";
  groups_[1].scale = 2;
  EXPECT_EQ(target().time, Seconds(1.6));
}

TEST_F(PolicyTest, AFasterPlanThanMaximumClockWhereItNeedsLess) {
  const TimeBounds bounds{Seconds(0), Seconds(1.7), 0};
  EXPECT_EQ(policy_target(policies_, groups_, 0, bounds, 0).time, Seconds(1));
  groups_[0].pipeline = &saving_;
  EXPECT_EQ(policy_target(policies_, groups_, 0, bounds, 0).time, Seconds(1.7));
}

TEST_F(PolicyTest, AveragePowerIsOfAllPipelinesAtTheirPoints) {
  EXPECT_DOUBLE_EQ(average_power(groups_, Seconds(1)).value(), 2 * 300.0);
  // At 1.4 s both still run the 1 s point, then wait.
  EXPECT_DOUBLE_EQ(average_power(groups_, Seconds(1.4)).value(), 2 * (200 + 140) / 1.4);
  groups_[0] = {&pipeline_, 1, 1, 1};  // a straggler keeps its fastest plan
  EXPECT_DOUBLE_EQ(average_power(groups_, Seconds(2)).value(), (160 + 200 + 2 * 200) / 2.0);
}

TEST_F(PolicyTest, ThePowerCapTakesTheFastestTimeThatKeepsIt) {
  set(jobs::PowerCap{Watts(600)});
  EXPECT_EQ(target().time, Seconds(1)) << "kept anyway";
  EXPECT_EQ(target().reason, "");
  set(jobs::PowerCap{Watts(599)});
  EXPECT_EQ(target().time, Seconds(1.5));
  set(jobs::PowerCap{Watts(400)});
  EXPECT_EQ(target().time, Seconds(2));
  set(jobs::PowerCap{Watts(100)});
  EXPECT_EQ(target().time, Seconds(2));
  EXPECT_THAT(target().reason, HasSubstr("cannot be kept"));
}

TEST_F(PolicyTest, ASlowdownHoldsWhileTheSignalIsAboveItsThreshold) {
  groups_[0].pipeline = &saving_;
  set(jobs::MaxSlowdown{1.5, 80, {{10, 81}, {20, 80}, {30, 95}, {40, 90}}, ""});
  EXPECT_EQ(target(1, 9).time, Seconds(1)) << "no signal yet";
  EXPECT_EQ(target(1, 10).time, Seconds(1.5));
  EXPECT_EQ(target(1.8, 10).time, Seconds(1.8)) << "the straggler is slower";
  EXPECT_EQ(target(1, 20).time, Seconds(1)) << "not above";
  EXPECT_EQ(target(1, 1000).time, Seconds(1.5)) << "the last value holds on";
  EXPECT_EQ(next_policy_change(policies_, 0), 10);
  EXPECT_EQ(next_policy_change(policies_, 10), 20);
  EXPECT_EQ(next_policy_change(policies_, 30), std::nullopt);
}

TEST_F(PolicyTest, ASlowdownWithoutASignalIsAlwaysInForce) {
  groups_[0].pipeline = &saving_;
  set(jobs::MaxSlowdown{1.503, {}, {}, ""});
  EXPECT_EQ(target(0, 0).time, Seconds(1.503));
  EXPECT_EQ(target(1.8, 0).time, Seconds(1.8)) << "the straggler is slower";
  EXPECT_THAT(target(0, 0).reason, HasSubstr("50.3 % slower than maximum clock"));
  EXPECT_EQ(next_policy_change(policies_, 0), std::nullopt);
}

TEST_F(PolicyTest, TheServersSlowdownIsForJobsWithoutAPolicyOfTheirOwn) {
  groups_[0].pipeline = &saving_;
  default_slowdown_ = 0.5;
  EXPECT_EQ(target(1, 0).time, Seconds(1.5));
  set(jobs::MaxSlowdown{1, {}, {}, ""});
  EXPECT_EQ(target(1, 0).time, Seconds(1));
  EXPECT_EQ(target(1, 0).reason, "");
}

TEST_F(PolicyTest, TheSlowerOfCapAndSlowdownRules) {
  groups_[0].pipeline = &saving_;
  set(jobs::MaxSlowdown{1.6, 0, {{0, 1}}, ""});
  set(jobs::PowerCap{Watts(599)});
  EXPECT_EQ(target().time, Seconds(1.6));
  set(jobs::PowerCap{Watts(250)});
  EXPECT_EQ(target().time, Seconds(2));
}

TEST_F(PolicyTest, APinOverrulesEverything) {
  set(jobs::PowerCap{Watts(100)});
  set(jobs::Pin{Seconds(1.25), std::nullopt});
  EXPECT_EQ(target(1.9).time, Seconds(1.25));
  set(jobs::Pin{std::nullopt, 1});
  EXPECT_EQ(target(1.9).time, Seconds(1.5));
  set(jobs::Pin{std::nullopt, 99});
  EXPECT_EQ(target(1.9).time, Seconds(1)) << "the last point there is";
}

/// Powers of both pipelines: 600 W at 1 s, 440 W at 1.5 s, 360 W at 2 s.
TEST_F(PolicyTest, WhatTheSiteGrantsBoundsEveryPolicy) {
  const auto under = [&](double granted_w) {
    const TimeBounds bounds{Seconds(0), Seconds(1), 0, Watts(granted_w)};
    return policy_target(policies_, groups_, 0, bounds, 0);
  };
  EXPECT_EQ(under(600).time, Seconds(1));
  EXPECT_EQ(under(600).reason, "");
  EXPECT_EQ(under(599).time, Seconds(1.5));
  EXPECT_EQ(under(599).reason, "grant of the site's limits 599 W: 440 W at 1.5 s");
  EXPECT_FALSE(under(300).kept);
  EXPECT_EQ(under(300).time, Seconds(2)) << "the slowest plan";
  set(jobs::PowerCap{Watts(400)});
  EXPECT_EQ(under(599).time, Seconds(2)) << "the smaller of both";
  EXPECT_EQ(under(360).time, Seconds(2));
  set(jobs::Pin{Seconds(1), std::nullopt});
  EXPECT_EQ(under(450).time, Seconds(1.5)) << "a pin does not exceed it";
  set(jobs::Pin{Seconds(2), std::nullopt});
  EXPECT_EQ(under(450).time, Seconds(2));
}

TEST(CheckPolicy, RefusesValuesOutOfRange) {
  for (const jobs::Policy& wrong :
       {jobs::Policy(jobs::PowerCap{Watts(0)}), jobs::Policy(jobs::PowerCap{Watts(NAN)}), jobs::Policy(jobs::Pin{}),
        jobs::Policy(jobs::Pin{Seconds(1), 1}), jobs::Policy(jobs::Pin{Seconds(0), {}}),
        jobs::Policy(jobs::Pin{{}, -1}), jobs::Policy(jobs::MaxSlowdown{0.9, {}, {}, ""}),
        jobs::Policy(jobs::MaxSlowdown{2, NAN, {}, ""}), jobs::Policy(jobs::MaxSlowdown{2, 0, {{5, 1}, {5, 2}}, ""}),
        jobs::Policy(jobs::MaxSlowdown{2, 0, {{5, INFINITY}}, ""}), jobs::Policy(jobs::MaxSlowdown{2, 0, {}, ""})}) {
    EXPECT_FALSE(check_policy(wrong).ok()) << jobs::text_of(wrong);
  }
  EXPECT_EQ(
      check_policy(jobs::MaxSlowdown{2, 0, {{5, 1}, {4, 2}}, ""}).error().message,
      "max_slowdown: signal[1]: value 2 from 4 s; allowed: finite values, each from later than the one before (5 s)");
  EXPECT_EQ(check_policy(jobs::MaxSlowdown{2, NAN, {}, ""}).error().message,
            "max_slowdown: threshold: nan; allowed: finite values");
  EXPECT_EQ(check_policy(jobs::MaxSlowdown{2, 80, {}, "EUR/MWh"}).error().message,
            "max_slowdown: threshold: 80, and no signal that could be above it; allowed: both, or neither to be slower "
            "always");
  for (const jobs::Policy& right :
       {jobs::Policy(jobs::PowerCap{Watts(1)}), jobs::Policy(jobs::Pin{{}, 0}),
        jobs::Policy(jobs::MaxSlowdown{1, {}, {}, ""}), jobs::Policy(jobs::MaxSlowdown{1, {}, {{5, 1}}, ""})}) {
    EXPECT_TRUE(check_policy(right).ok()) << jobs::text_of(right);
  }
}

}  // namespace
}  // namespace perseus::policies
