// Facts that a rank learns: each is news once, small changes are none, and a loss of control only if it lasts.
#include "training/client/learned_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::client {
namespace {

using ::testing::ElementsAre;

class LearnedFactsTest : public ::testing::Test {
 protected:
  LearnedFactsTest() {
    RankFacts facts;
    facts.clocks_mhz = {1410, 900};
    learned_.registered(facts);
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

  LearnedFacts learned_;
  LearnedFacts::Now now_;
};

TEST_F(LearnedFactsTest, WithoutAnythingNewThereIsNoNews) { EXPECT_FALSE(learned_.news(now_, 1)); }

TEST_F(LearnedFactsTest, TheInstructionsOfTheFirstWholeStepAreNewsOnce) {
  learned_.ran(step(false));
  EXPECT_FALSE(learned_.news(now_, 1));
  learned_.ran(step(true));
  const auto news = learned_.news(now_, 2);
  ASSERT_TRUE(news);
  EXPECT_THAT(news->instructions, ElementsAre("forward", "backward"));
  learned_.ran(step(true));
  EXPECT_FALSE(learned_.news(now_, 3));
}

TEST_F(LearnedFactsTest, ALatencyIsNewsIfItDiffersByMoreThanATenth) {
  now_.switch_latency_s = 0.010;
  ASSERT_TRUE(learned_.news(now_, 1));
  now_.switch_latency_s = 0.0109;
  EXPECT_FALSE(learned_.news(now_, 2));
  now_.switch_latency_s = 0.0111;
  const auto news = learned_.news(now_, 3);
  ASSERT_TRUE(news);
  EXPECT_EQ(news->switch_latency_s, 0.0111);
  now_.switch_latency_s = 0;  // not known
  EXPECT_FALSE(learned_.news(now_, 4));
}

TEST_F(LearnedFactsTest, ABlockingPowerIsNewsOnceItIsKnownWellEnough) {
  now_.blocking = {80, 5};
  EXPECT_FALSE(learned_.news(now_, 1));
  now_.blocking = {80, 3};
  const auto news = learned_.news(now_, 2);
  ASSERT_TRUE(news);
  EXPECT_EQ(news->blocking_power_w, 80);
}

TEST_F(LearnedFactsTest, ALossOfControlIsNewsAfterTenSecondsAndItsEndAtOnce) {
  now_.sets_clocks = false;
  EXPECT_FALSE(learned_.news(now_, 100));
  EXPECT_FALSE(learned_.news(now_, 109.9));
  const auto loss = learned_.news(now_, 110);
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->control, "none");
  EXPECT_EQ(loss->control_reason, "the helper ended");
  EXPECT_FALSE(learned_.news(now_, 200));
  now_.sets_clocks = true;
  const auto gain = learned_.news(now_, 201);
  ASSERT_TRUE(gain);
  EXPECT_EQ(gain->control, "clocks");
  EXPECT_EQ(gain->control_reason, "");
}

TEST_F(LearnedFactsTest, AShortLossOfControlIsNoNews) {
  now_.sets_clocks = false;
  EXPECT_FALSE(learned_.news(now_, 100));
  now_.sets_clocks = true;
  EXPECT_FALSE(learned_.news(now_, 105));
  now_.sets_clocks = false;
  EXPECT_FALSE(learned_.news(now_, 111));
}

TEST_F(LearnedFactsTest, ARankThatRegisteredWithoutClocksNamesThemOnceItSetsThem) {
  RankFacts facts;
  facts.control = "none";
  learned_.registered(facts);
  now_.sets_clocks = false;
  EXPECT_FALSE(learned_.news(now_, 1));
  now_.sets_clocks = true;
  const auto news = learned_.news(now_, 2);
  ASSERT_TRUE(news);
  EXPECT_THAT(news->clocks_mhz, ElementsAre(1410, 900));
  EXPECT_EQ(news->control, "clocks");
}

}  // namespace
}  // namespace perseus::client
