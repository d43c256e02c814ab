// Facts that a rank learns: each is news once, small changes are none, and a loss of control only if it lasts.
#include "training/client/learnt_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::client {
namespace {

using ::testing::ElementsAre;

class LearntFactsTest : public ::testing::Test {
 protected:
  LearntFactsTest() {
    RankFacts facts;
    facts.clocks_mhz = {1410, 900};
    learnt_.registered(facts);
    now_.clocks_mhz = {1410, 900};
    now_.has_control = now_.sets_clocks = true;
    now_.why_no_clocks = [] { return "the helper ended"; };
  }
  static Step step(bool clean) {
    Step step;
    step.clean = clean;
    step.computations.resize(2);
    step.computations[1].instruction = model::Instruction::backward;
    step.count = 2;
    return step;
  }

  LearntFacts learnt_;
  LearntFacts::Now now_;
};

TEST_F(LearntFactsTest, WithoutAnythingNewThereIsNoNews) { EXPECT_FALSE(learnt_.news(now_, 1)); }

TEST_F(LearntFactsTest, TheInstructionsOfTheFirstWholeStepAreNewsOnce) {
  learnt_.ran(step(false));
  EXPECT_FALSE(learnt_.news(now_, 1));
  learnt_.ran(step(true));
  const auto news = learnt_.news(now_, 2);
  ASSERT_TRUE(news);
  EXPECT_THAT(news->instructions, ElementsAre("forward", "backward"));
  learnt_.ran(step(true));
  EXPECT_FALSE(learnt_.news(now_, 3));
}

TEST_F(LearntFactsTest, ALatencyIsNewsIfItDiffersByMoreThanATenth) {
  now_.switch_latency_s = 0.010;
  ASSERT_TRUE(learnt_.news(now_, 1));
  now_.switch_latency_s = 0.0109;
  EXPECT_FALSE(learnt_.news(now_, 2));
  now_.switch_latency_s = 0.0111;
  const auto news = learnt_.news(now_, 3);
  ASSERT_TRUE(news);
  EXPECT_EQ(news->switch_latency_s, 0.0111);
  now_.switch_latency_s = 0;  // not known
  EXPECT_FALSE(learnt_.news(now_, 4));
}

TEST_F(LearntFactsTest, ABlockingPowerIsNewsOnceItIsKnownWellEnough) {
  now_.blocking = {80, 5};
  EXPECT_FALSE(learnt_.news(now_, 1));
  now_.blocking = {80, 3};
  const auto news = learnt_.news(now_, 2);
  ASSERT_TRUE(news);
  EXPECT_EQ(news->blocking_power_w, 80);
}

TEST_F(LearntFactsTest, ALossOfControlIsNewsAfterTenSecondsAndItsEndAtOnce) {
  now_.sets_clocks = false;
  EXPECT_FALSE(learnt_.news(now_, 100));
  EXPECT_FALSE(learnt_.news(now_, 109.9));
  const auto loss = learnt_.news(now_, 110);
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->control, "none");
  EXPECT_EQ(loss->control_reason, "the helper ended");
  EXPECT_FALSE(learnt_.news(now_, 200));
  now_.sets_clocks = true;
  const auto gain = learnt_.news(now_, 201);
  ASSERT_TRUE(gain);
  EXPECT_EQ(gain->control, "clocks");
  EXPECT_EQ(gain->control_reason, "");
}

TEST_F(LearntFactsTest, AShortLossOfControlIsNoNews) {
  now_.sets_clocks = false;
  EXPECT_FALSE(learnt_.news(now_, 100));
  now_.sets_clocks = true;
  EXPECT_FALSE(learnt_.news(now_, 105));
  now_.sets_clocks = false;
  EXPECT_FALSE(learnt_.news(now_, 111));
}

TEST_F(LearntFactsTest, ARankThatRegisteredWithoutClocksNamesThemOnceItSetsThem) {
  RankFacts facts;
  facts.control = "none";
  learnt_.registered(facts);
  now_.sets_clocks = false;
  EXPECT_FALSE(learnt_.news(now_, 1));
  now_.sets_clocks = true;
  const auto news = learnt_.news(now_, 2);
  ASSERT_TRUE(news);
  EXPECT_THAT(news->clocks_mhz, ElementsAre(1410, 900));
  EXPECT_EQ(news->control, "clocks");
}

}  // namespace
}  // namespace perseus::client
