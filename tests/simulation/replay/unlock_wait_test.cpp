#include "simulation/replay/unlock_wait.h"

#include <gtest/gtest.h>

namespace perseus::replay {
namespace {

using Advice = UnlockWait::Advice;
using Helper = UnlockWait::Helper;
constexpr double kLong_s = 2 * UnlockWait::kSilence_s;

TEST(UnlockWait, EndsWhenNoClockIsLocked) {
  UnlockWait wait;
  EXPECT_EQ(wait.look(0, {{{7, 'S', 1}}, {0}}), Advice::wait);
  EXPECT_EQ(wait.look(1, {{{7, 'S', 1}}, {}}), Advice::done);
}

TEST(UnlockWait, WaitsAsLongAsHelpersAdvance) {
  UnlockWait wait;
  double now_s = 0;
  for (int i = 0; i < 5; ++i) {  // one clock after the other
    std::vector<int> locked;
    for (int w = i; w < 5; ++w) locked.push_back(w);
    EXPECT_EQ(wait.look(now_s += kLong_s, {{{7, 'S', 1}}, locked}), Advice::wait);
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(wait.look(now_s += kLong_s, {{{7, 'S', 2 + i}}, {4}}), Advice::wait);
}

TEST(UnlockWait, WaitsForHelpersThatGetNoProcessor) {
  UnlockWait wait;
  const UnlockWait::Seen starved{{{7, 'S', 1}, {8, 'R', 1}}, {0}};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(wait.look(i * kLong_s, starved), Advice::wait);
}

TEST(UnlockWait, GivesUpWhenNothingChanges) {
  UnlockWait wait;
  const UnlockWait::Seen stuck{{{7, 'S', 1}, {8, 'D', 1}}, {0}};
  EXPECT_EQ(wait.look(0, stuck), Advice::wait);
  EXPECT_EQ(wait.look(UnlockWait::kSilence_s, stuck), Advice::wait);
  EXPECT_EQ(wait.look(UnlockWait::kSilence_s + 1, stuck), Advice::stuck);
  EXPECT_EQ(text_of(stuck.helpers), "process 7 (state S), process 8 (state D)");
}

TEST(UnlockWait, ALockWithoutAHelperIsGivenBackInItsPlace) {
  UnlockWait wait;
  EXPECT_EQ(wait.look(0, {{{7, 'S', 1}}, {0}}), Advice::wait);
  EXPECT_EQ(wait.look(1, {{}, {0}}), Advice::give_back);
  EXPECT_EQ(wait.look(2 + UnlockWait::kSilence_s, {{}, {0}}), Advice::stuck);
  EXPECT_EQ(text_of(std::vector<Helper>{}), "no process");
}

}  // namespace
}  // namespace perseus::replay
