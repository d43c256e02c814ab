#include "server/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/event.h"

namespace perseus::server {
namespace {

using ::testing::HasSubstr;

/// Three points: 1 s at 300 J, 1.5 s at 330 J, 2 s at 360 J in all; waiting draws 100 W, so that the effective energies
/// are 200, 180 and 160 J.
CharacterisedPipeline three_points() {
  CharacterisedPipeline pipeline;
  pipeline.dag.blocking_power = Watts(100);
  pipeline.dag.accelerators = {1};
  for (const auto& [time, effective] : {std::pair{2.0, 160.0}, {1.5, 180.0}, {1.0, 200.0}}) {
    FrontierPoint point{Seconds(time), Joules(effective + 100 * time), Joules(effective), Joules(0), {}};
    pipeline.frontier.points.push_back(point);
  }
  return pipeline;
}

class PolicyTest : public ::testing::Test {
 protected:
  Target target(double t_straggler = 1, double now_s = 0) {
    return policy_target(policies_, groups_, 0, Seconds(t_straggler), Seconds(1), default_slowdown_, now_s);
  }
  void set(const Policy& policy) { policies_[std::string(kind_of(policy))] = policy; }

  CharacterisedPipeline pipeline_ = three_points();
  std::vector<PipelineGroup> groups_{{&pipeline_, 1, 2, 0}};  // two pipelines
  std::map<std::string, Policy> policies_;
  double default_slowdown_ = 0;
};

TEST_F(PolicyTest, NoneLeavesTheTimeToStragglers) {
  EXPECT_EQ(target(1.2).time, Seconds(1.2));
  EXPECT_EQ(target(1.2).reason, "");
}

TEST_F(PolicyTest, AveragePowerIsOfAllPipelinesAtTheirPoints) {
  EXPECT_DOUBLE_EQ(average_power(groups_, Seconds(1)).value(), 2 * 300.0);
  // At 1.4 s both still run the 1 s point and wait.
  EXPECT_DOUBLE_EQ(average_power(groups_, Seconds(1.4)).value(), 2 * (200 + 140) / 1.4);
  groups_[0] = {&pipeline_, 1, 1, 1};  // a straggler keeps its fastest plan
  EXPECT_DOUBLE_EQ(average_power(groups_, Seconds(2)).value(), (160 + 200 + 2 * 200) / 2.0);
}

TEST_F(PolicyTest, ThePowerCapTakesTheFastestTimeThatKeepsIt) {
  set(PowerCap{Watts(600)});
  EXPECT_EQ(target().time, Seconds(1)) << "kept anyway";
  EXPECT_EQ(target().reason, "");
  set(PowerCap{Watts(599)});
  EXPECT_EQ(target().time, Seconds(1.5));
  set(PowerCap{Watts(400)});
  EXPECT_EQ(target().time, Seconds(2));
  set(PowerCap{Watts(100)});
  EXPECT_EQ(target().time, Seconds(2));
  EXPECT_THAT(target().reason, HasSubstr("cannot be kept"));
}

TEST_F(PolicyTest, ASlowdownHoldsWhileTheSignalIsAboveItsThreshold) {
  set(MaxSlowdown{1.5, 80, {{10, 81}, {20, 80}, {30, 95}, {40, 90}}, ""});
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
  set(MaxSlowdown{1.003, 0, {}, ""});
  EXPECT_EQ(target(1, 0).time, Seconds(1.003));
  EXPECT_EQ(target(1.2, 0).time, Seconds(1.2)) << "the straggler is slower";
  EXPECT_THAT(target(1, 0).reason, HasSubstr("0.3 % slower than maximum clock"));
  EXPECT_EQ(next_policy_change(policies_, 0), std::nullopt);
}

TEST_F(PolicyTest, TheServersSlowdownIsForJobsWithoutAPolicyOfTheirOwn) {
  default_slowdown_ = 0.5;
  EXPECT_EQ(target(1, 0).time, Seconds(1.5));
  set(MaxSlowdown{1, 0, {}, ""});
  EXPECT_EQ(target(1, 0).time, Seconds(1));
  EXPECT_EQ(target(1, 0).reason, "");
}

TEST_F(PolicyTest, TheSlowerOfCapAndSlowdownRules) {
  set(MaxSlowdown{1.6, 0, {{0, 1}}, ""});
  set(PowerCap{Watts(599)});
  EXPECT_EQ(target().time, Seconds(1.6));
  set(PowerCap{Watts(400)});
  EXPECT_EQ(target().time, Seconds(2));
}

TEST_F(PolicyTest, APinOverrulesEverything) {
  set(PowerCap{Watts(100)});
  set(Pin{Seconds(1.25), std::nullopt});
  EXPECT_EQ(target(1.9).time, Seconds(1.25));
  set(Pin{std::nullopt, 1});
  EXPECT_EQ(target(1.9).time, Seconds(1.5));
  set(Pin{std::nullopt, 99});
  EXPECT_EQ(target(1.9).time, Seconds(1)) << "the last point there is";
}

TEST(CheckPolicy, RefusesWhatIsOutOfRange) {
  for (const Policy& wrong :
       {Policy(PowerCap{Watts(0)}), Policy(PowerCap{Watts(NAN)}), Policy(Pin{}), Policy(Pin{Seconds(1), 1}),
        Policy(Pin{Seconds(0), {}}), Policy(Pin{{}, -1}), Policy(MaxSlowdown{0.9, 0, {}, ""}),
        Policy(MaxSlowdown{2, NAN, {}, ""}), Policy(MaxSlowdown{2, 0, {{5, 1}, {5, 2}}, ""}),
        Policy(MaxSlowdown{2, 0, {{5, INFINITY}}, ""})}) {
    EXPECT_FALSE(check_policy(wrong).ok()) << text_of(wrong);
  }
  for (const Policy& right : {Policy(PowerCap{Watts(1)}), Policy(Pin{{}, 0}), Policy(MaxSlowdown{1, 0, {}, ""})}) {
    EXPECT_TRUE(check_policy(right).ok()) << text_of(right);
  }
}

}  // namespace
}  // namespace perseus::server
