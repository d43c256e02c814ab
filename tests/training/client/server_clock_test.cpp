// The server's time on a host's clock: never later than it is, whatever the delays of requests and answers.
#include "training/client/server_clock.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "oracles/dice.h"

namespace perseus::client {
namespace {

using testing::Dice;
using testing::ShrinkingDice;

constexpr double kRounding_s = 1e-5;  // of times since 1970 as doubles

TEST(ServerClock, KnowsNothingBeforeAnAnswer) {
  ServerClock clock;
  EXPECT_FALSE(clock.earliest(1.8e9));
  clock.answered({120, 100, 120, AnswerTime{1.8e9, 30}});
  EXPECT_FALSE(clock.earliest(1.8e9)) << "held for longer than the whole call took";
  clock.answered({120, 100, 120, AnswerTime{1.8e9, -1}});
  EXPECT_FALSE(clock.earliest(1.8e9));
  clock.answered({120, 100, 120});
  EXPECT_FALSE(clock.earliest(1.8e9));
}

TEST(ServerClock, AHeldRequestIsAsGoodAsOneThatIsAnsweredAtOnce) {
  ServerClock clock;
  clock.answered({130, 100, 130, AnswerTime{1.8e9, 29.9}});
  EXPECT_NEAR(*clock.earliest(1.8e9 + 60), 189.9 - 30 * ServerClock::kDrift, kRounding_s);
}

TEST(ServerClock, FollowsAServerWhoseClockIsSet) {
  ServerClock clock;
  clock.answered({100.01, 100, 100.01, AnswerTime{1.8e9, 0}});
  clock.answered({105.01, 105, 105.01, AnswerTime{1.8e9 + 305, 0}});
  EXPECT_NEAR(*clock.earliest(1.8e9 + 305), 105, 0.01 * ServerClock::kDrift + kRounding_s);
}

/// A relay may keep a request before and after the server had it, and a stopped process reads late.
double any_delay_s(Dice& dice) { return dice.one_in(5) ? dice.real(0, 20) : dice.real(0, 0.05); }

RC_GTEST_PROP(ServerClockProperty, IsNeverLateAndEarlyByTheShortestRoundTripAtMost, ()) {
  ShrinkingDice dice;
  const double offset_s = 1.8e9 + dice.real(-1e6, 1e6);  // the server's time when the monotonic clock is 0
  const double rate = 1 + ServerClock::kDrift * (dice.one_in(2) ? dice.real(-0.9, 0.9) : 0);
  const auto server_s = [&](double monotonic_s) { return offset_s + rate * monotonic_s; };
  ServerClock clock;
  double now_s = dice.real(0, 1e5), shortest_s = 1e9;
  for (int k = 0; k < dice.roll(1, 30); ++k) {
    const double asked_s = now_s + dice.real(0, 5), got_s = asked_s + any_delay_s(dice);
    const double sent_s = got_s + (dice.one_in(2) ? dice.real(0, 30) : 0);
    now_s = sent_s + any_delay_s(dice);
    clock.answered({now_s, asked_s, now_s, AnswerTime{server_s(sent_s), rate * (sent_s - got_s)}});
    const double drift_s = 3 * ServerClock::kDrift * (now_s - asked_s);
    shortest_s = std::min(shortest_s + drift_s, got_s - asked_s + now_s - sent_s + drift_s);
    const double error_s = *clock.earliest(server_s(now_s)) - now_s;
    RC_ASSERT(error_s <= kRounding_s);
    RC_ASSERT(error_s >= -shortest_s - 3 * ServerClock::kDrift * 35 * (k + 1) - kRounding_s);
  }
}

}  // namespace
}  // namespace perseus::client
