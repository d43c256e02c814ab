// Pauses of evaluation: their share of the time, and that ranks which wait for each other do not drift apart.
#include "training/client/evaluation_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace perseus::client {
namespace {

constexpr std::uint64_t kOneSecond = 1'000'000'000;

TEST(EvaluationPace, KeepsTheShareOfStepsThatAreAlike) {
  EvaluationPace pace;
  EXPECT_EQ(pace.pause_ns(kOneSecond, 0.25), 0U) << "the first step may have waited for other ranks";
  for (int step = 0; step < 20; ++step) EXPECT_EQ(pace.pause_ns(kOneSecond, 0.25), 3 * kOneSecond);
  EXPECT_EQ(pace.pause_ns(kOneSecond, 1), 0U);
}

TEST(EvaluationPace, FollowsLongerStepsAfterAFew) {
  EvaluationPace pace;
  for (int step = 0; step < 20; ++step) (void)pace.pause_ns(kOneSecond, 0.5);
  std::uint64_t pause = 0;
  for (std::size_t step = 0; step < EvaluationPace::kSteps; ++step) pause = pace.pause_ns(4 * kOneSecond, 0.5);
  EXPECT_EQ(pause, 4 * kOneSecond);
  EXPECT_EQ(pace.pause_ns(kOneSecond / 2, 0.5), kOneSecond / 2) << "and shorter ones at once";
}

TEST(EvaluationPace, RanksThatBeganApartComeTogether) {
  for (const double share : {0.9, 0.5, 0.3, 0.1}) {
    EvaluationPace first, second;
    std::uint64_t first_begins = 0, second_begins = 2 * kOneSecond, longest_apart = 0;
    for (int step = 0; step < 50; ++step) {
      // A step computes a tenth of a second from the last begin on, and ends for both at once.
      const std::uint64_t ends = std::max(first_begins, second_begins) + kOneSecond / 10;
      const std::uint64_t pause_1 = first.pause_ns(ends - first_begins, share);
      const std::uint64_t pause_2 = second.pause_ns(ends - second_begins, share);
      first_begins = ends + pause_1;
      second_begins = ends + pause_2;
      if (step % 10 == 4) second_begins += 2 * kOneSecond;  // something else delays a rank now and then
      const std::uint64_t apart = std::max(first_begins, second_begins) - std::min(first_begins, second_begins);
      longest_apart = std::max(longest_apart, apart);
    }
    EXPECT_EQ(first_begins, second_begins) << share;
    EXPECT_LE(longest_apart, 2 * kOneSecond) << share;
  }
}

}  // namespace
}  // namespace perseus::client
