#include "training/clock_control/request_rhythm.h"

#include <algorithm>
#include <cstdlib>

namespace perseus::clock_control {
namespace {

constexpr std::uint32_t kMostNumbers = 65536;          // of a step
constexpr std::int64_t kHiccup = 8;                    // a gap is a hiccup if it differs by more than 1/8
constexpr std::int64_t kLongestGap = 100'000'000'000;  // ns; longer ones are pauses of the training
// Naps between two polls: a change is seen up to one nap late, and each poll costs some 6 us of processor time.
constexpr std::int64_t kNap = 80'000, kLikelyNap = 110'000, kLongestNap = 4'000'000;
constexpr std::int64_t kShareAround = 8;  // nap as a fraction (1/8) of the distance to the expected moment, in a
                                          // calm rhythm
// Without a rhythm: a fraction of the time since the last change, at most 0.5 ms or the smaller fraction.
constexpr std::int64_t kShareUnknown = 50, kDoze = 500'000, kShareOfStall = 250;
constexpr int kCalm = 32;                     // consecutive changes of which none came while the helper slept
constexpr std::int64_t kWakingUp = 60'000;    // from a sleep with a limit: the timer, then cold caches
constexpr std::int64_t kFirstDeviation = 64;  // initial deviation, as a fraction of a gap that was observed once

std::int64_t nap_in(const RequestWindow& expected, std::int64_t now_ns) {
  if (expected.trust != RhythmTrust::calm) return kNap;
  return std::clamp(std::abs(expected.due_ns - now_ns) / kShareAround, kNap, kLikelyNap);
}

std::int64_t nap_out_of_rhythm(std::int64_t since_ns) {
  return std::clamp(since_ns / kShareUnknown, kNap, std::max(kDoze, since_ns / kShareOfStall));
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
  const std::int64_t difference = gap_ns - mean_ns;
  const bool hiccup = std::abs(difference) > mean_ns / kHiccup;
  trust = static_cast<std::int8_t>(std::clamp(trust + (hiccup ? -1 : 1), 0, 3));
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
  return {mean_ns - std::min(4 * deviation_ns + kNap, mean_ns / 10) - kWakingUp, mean_ns, mean_ns + mean_ns / kHiccup};
}

void RequestRhythm::requested(std::uint32_t number, std::int64_t at_ns, std::int64_t not_before_ns) {
  const std::int64_t gap_ns = at_ns - at_ns_;
  calm_ = not_before_ns < next(number).opens_ns - kNap ? 0 : std::min(calm_ + 1, kCalm);
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
    const RhythmTrust trust = here.gap.trust <= 2 ? RhythmTrust::seen_once
                              : calm_ < kCalm     ? RhythmTrust::confirmed
                                                  : RhythmTrust::calm;
    return {at_ns_ + window.opens_ns, at_ns_ + window.due_ns, at_ns_ + window.closes_ns, trust};
  }
  if (*number <= number_ || *number >= places_.size()) return {};
  const std::int64_t gap_ns = places_[*number].since_step_ns - here.since_step_ns;
  if (here.since_step_ns < 0 || gap_ns <= 0) return {};
  return {at_ns_ + gap_ns - gap_ns / kHiccup, at_ns_ + gap_ns, at_ns_ + gap_ns + gap_ns / kHiccup};
}

Rest rest_until(RequestWindow expected, std::int64_t now_ns, std::int64_t due_ns) {
  if (now_ns >= expected.closes_ns) return {due_ns, HelperRest::asleep};
  const std::int64_t opens_in_ns = expected.opens_ns - now_ns;
  if (opens_in_ns > kNap) return {earlier(due_ns, opens_in_ns), HelperRest::asleep};
  return {earlier(due_ns, nap_in(expected, now_ns)), HelperRest::awake};
}

Rest doze_until(RequestWindow expected, std::int64_t last_ns, std::int64_t now_ns, std::int64_t due_ns) {
  const std::int64_t opens_in_ns = expected.opens_ns - now_ns;
  const std::int64_t half_ns = last_ns + (expected.opens_ns - last_ns) / 2 - now_ns;
  std::int64_t limit_ns = nap_out_of_rhythm(now_ns - last_ns);
  if (now_ns < expected.closes_ns && opens_in_ns <= kNap) {
    limit_ns = nap_in(expected, now_ns);
  } else if (expected.trust == RhythmTrust::calm) {
    limit_ns = opens_in_ns > 0 ? opens_in_ns : std::clamp((now_ns - expected.due_ns) / kShareAround, kNap, kLongestNap);
  } else if (opens_in_ns > 0 && expected.trust == RhythmTrust::confirmed) {
    // Another plan changes the rhythm, but rarely by half; then poll more often the closer the window is.
    limit_ns = std::max(half_ns, std::clamp(opens_in_ns / 2, kDoze, 4 * kDoze));
  }
  if (opens_in_ns > 0) limit_ns = std::min(limit_ns, std::max(opens_in_ns, kNap));
  return {earlier(due_ns, limit_ns), HelperRest::dozing};
}

}  // namespace perseus::clock_control
