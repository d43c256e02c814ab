#include "clock_control/request_rhythm.h"

#include <algorithm>
#include <cstdlib>

namespace perseus {
namespace {

constexpr std::uint32_t kMostNumbers = 65536;          // of a step
constexpr std::int64_t kLongestGap = 100'000'000'000;  // ns; longer ones are pauses of the training
// Naps between two looks: a change is seen up to one nap late, and each look costs some 6 us of processor time. A nap
// is a share of the distance to the expected moment: short where the change is likely, longer where it is not, and
// longer and longer after a missed one. Where no moment is known, it is a share of the time since the last change.
constexpr std::int64_t kNap = 80'000, kNapInWindow = 110'000, kLongestNap = 4'000'000;
constexpr std::int64_t kShare = 8, kShareUnknown = 16;
constexpr std::int64_t kWakingUp = 60'000;    // from a sleep with a limit: the timer, then cold caches
constexpr std::int64_t kFirstDeviation = 64;  // share of a gap that was seen once

std::int64_t nap_around(const RequestWindow& expected, std::int64_t now_ns) {
  const bool inside = expected.opens_ns <= now_ns + kNap && now_ns < expected.closes_ns;
  return std::clamp(std::abs(expected.due_ns - now_ns) / kShare, kNap, inside ? kNapInWindow : kLongestNap);
}

std::int64_t earlier(std::int64_t due_in_ns, std::int64_t limit_ns) {
  return due_in_ns < 0 ? limit_ns : std::min(due_in_ns, limit_ns);
}

}  // namespace

// The estimators of TCP's retransmission timer: a mean, and a mean deviation of which four are a safe distance.
void RequestRhythm::Gap::learn(std::uint32_t number, std::int64_t gap_ns) {
  if (mean_ns == 0 || (number != to && surprised)) {
    *this = {number, gap_ns, gap_ns / kFirstDeviation, 2, false};
    return;
  }
  if (number != to) {
    surprised = true;
    return;
  }
  const bool came_in_time = window().opens_ns <= gap_ns && gap_ns <= window().closes_ns;
  trust = static_cast<std::int8_t>(std::clamp(trust + (came_in_time ? 1 : -1), 0, 3));
  const std::int64_t difference = gap_ns - mean_ns;
  const bool hiccup = std::abs(difference) > mean_ns / 8;
  if (hiccup && surprised) {
    *this = {number, gap_ns, gap_ns / kFirstDeviation, trust, false};
    return;
  }
  surprised = hiccup;
  if (hiccup) return;
  mean_ns += difference / 4;
  deviation_ns += (std::abs(difference) - deviation_ns) / 4;
}

RequestWindow RequestRhythm::Gap::window() const {
  const std::int64_t widest_ns = mean_ns / 10;
  return {mean_ns - std::min(4 * deviation_ns, widest_ns) - kWakingUp, mean_ns,
          mean_ns + std::min(6 * deviation_ns + kWakingUp, widest_ns), false};
}

void RequestRhythm::requested(std::uint32_t number, std::int64_t at_ns) {
  const std::int64_t gap_ns = at_ns - at_ns_;
  early_ = at_ns < next(number).opens_ns;
  if (number == 0) step_began_ns_ = at_ns;
  if (number < kMostNumbers && places_.size() <= number) places_.resize(number + std::size_t{1});
  if (at_ns_ != 0 && number_ < kMostNumbers && gap_ns > 0 && gap_ns < kLongestGap) {
    places_[number_].gap.learn(number, gap_ns);
  }
  if (number < kMostNumbers && step_began_ns_ != 0) places_[number].since_step_ns = at_ns - step_began_ns_;
  number_ = number;
  at_ns_ = at_ns;
}

RequestWindow RequestRhythm::next(std::optional<std::uint32_t> number) const {
  if (number_ >= places_.size()) return {};
  const Place& here = places_[number_];
  if (!number || *number == here.gap.to) {
    if (here.gap.trust < 2) return {};
    const RequestWindow window = here.gap.window();
    return {at_ns_ + window.opens_ns, at_ns_ + window.due_ns, at_ns_ + window.closes_ns, here.gap.trust > 2 && !early_};
  }
  if (*number <= number_ || *number >= places_.size()) return {};
  const std::int64_t gap_ns = places_[*number].since_step_ns - here.since_step_ns;
  if (here.since_step_ns < 0 || gap_ns <= 0) return {};
  return {at_ns_ + gap_ns - gap_ns / 8, at_ns_ + gap_ns, at_ns_ + gap_ns + gap_ns / 8, false};
}

Rest rest_until(RequestWindow expected, std::int64_t now_ns, std::int64_t due_ns) {
  if (now_ns >= expected.closes_ns) return {due_ns, HelperRest::asleep};
  const std::int64_t opens_in_ns = expected.opens_ns - now_ns;
  if (opens_in_ns > kNap) return {earlier(due_ns, opens_in_ns), HelperRest::asleep};
  return {earlier(due_ns, nap_around(expected, now_ns)), HelperRest::awake};
}

Rest doze_until(RequestWindow expected, std::int64_t last_ns, std::int64_t now_ns, std::int64_t due_ns) {
  std::int64_t limit_ns = std::clamp((now_ns - last_ns) / kShareUnknown, kNap, kLongestNap);
  if (expected.closes_ns != 0) {
    // Another plan changes the rhythm, but hardly by half.
    const std::int64_t sleep_until_ns =
        expected.confirmed ? expected.opens_ns : last_ns + (expected.opens_ns - last_ns) / 2;
    limit_ns = std::max(sleep_until_ns - now_ns, std::min(limit_ns, nap_around(expected, now_ns)));
  }
  return {earlier(due_ns, limit_ns), HelperRest::dozing};
}

}  // namespace perseus
