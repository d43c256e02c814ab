#include "clock_control/request_rhythm.h"

#include <algorithm>
#include <cstdlib>

namespace perseus {
namespace {

constexpr std::uint32_t kMostRequests = 65536;         // of a step
constexpr std::int64_t kLongestGap = 100'000'000'000;  // ns; longer ones are pauses of the training
// Naps are the latency of a request that comes in its window. Each costs some 5 us of processor time.
constexpr std::int64_t kNap = 80'000;
// Out of rhythm: the longest time between two looks at the device, and the share of the time since the last change.
constexpr std::int64_t kDoze = 500'000, kDozeShare = 50;
constexpr std::int64_t kWakingUp = 60'000;  // from a sleep with a limit: the timer, then cold caches

}  // namespace

// The estimators of TCP's retransmission timer: a mean, and a mean deviation of which four are a safe distance.
void RequestRhythm::Gap::learn(std::int64_t gap_ns) {
  if (mean_ns == 0) {
    *this = {gap_ns, gap_ns / 32, 2, false};
    return;
  }
  const bool came_in_time = window().opens_ns <= gap_ns && gap_ns <= window().closes_ns;
  trust = static_cast<std::int8_t>(std::clamp(trust + (came_in_time ? 1 : -1), 0, 3));
  const std::int64_t difference = gap_ns - mean_ns;
  const bool hiccup = std::abs(difference) > mean_ns / 8;
  if (hiccup && surprised) {
    *this = {gap_ns, gap_ns / 32, trust, false};
    return;
  }
  surprised = hiccup;
  if (hiccup) return;
  mean_ns += difference / 4;
  deviation_ns += (std::abs(difference) - deviation_ns) / 8;
}

RequestWindow RequestRhythm::Gap::window() const {
  return {mean_ns - std::min(4 * deviation_ns, mean_ns / 10) - kWakingUp, mean_ns + mean_ns / 8};
}

void RequestRhythm::requested(std::uint32_t number, std::int64_t at_ns) {
  const bool follows = at_ns_ != 0 && (number == number_ + 1 || number == 0);
  const std::int64_t gap_ns = at_ns - at_ns_;
  if (follows && number_ < kMostRequests && gap_ns > 0 && gap_ns < kLongestGap) {
    if (gaps_.size() <= number_) gaps_.resize(number_ + std::size_t{1});
    gaps_[number_].learn(gap_ns);
  }
  number_ = number;
  at_ns_ = at_ns;
}

RequestWindow RequestRhythm::next() const {
  if (number_ >= gaps_.size() || gaps_[number_].trust < 2) return {};
  const RequestWindow window = gaps_[number_].window();
  return {at_ns_ + window.opens_ns, at_ns_ + window.closes_ns};
}

Rest rest_until(RequestWindow expected, std::int64_t now_ns, std::int64_t due_ns) {
  const auto earlier = [due_ns](std::int64_t limit_ns) { return due_ns < 0 ? limit_ns : std::min(due_ns, limit_ns); };
  if (now_ns >= expected.closes_ns) return {due_ns, HelperRest::asleep};
  const std::int64_t opens_in_ns = expected.opens_ns - now_ns;
  if (opens_in_ns > kNap) return {earlier(opens_in_ns), HelperRest::asleep};
  return {earlier(kNap), HelperRest::awake};
}

Rest doze_until(RequestWindow expected, std::int64_t last_ns, std::int64_t now_ns, std::int64_t due_ns) {
  std::int64_t limit_ns = 0;
  if (now_ns < expected.closes_ns) {
    // New clocks change the rhythm, but hardly by half.
    const std::int64_t half_ns = last_ns + (expected.opens_ns - last_ns) / 2 - now_ns;
    limit_ns = std::clamp(expected.opens_ns - now_ns, kNap, std::max(half_ns, kDoze));
  } else {
    limit_ns = std::clamp((now_ns - last_ns) / kDozeShare, kNap, kDoze);
  }
  return {due_ns < 0 ? limit_ns : std::min(due_ns, limit_ns), HelperRest::dozing};
}

}  // namespace perseus
