#include "training/clock_control/clock_watch.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace perseus::clock_control {
namespace {

constexpr double kWithin = 0.02;
constexpr int kWithin_mhz = 20;
constexpr double kLimited = 0.05;  // below the clock: worth a word
constexpr int kBelow = 2;          // readings in a row without a reason: a limit that has just ended gives none
constexpr std::int64_t kAnswersWithin = 1'000'000'000;    // ns, from setting the clock again
constexpr int kTriesBelow = 3, kTriesAbove = 12;          // in a row
constexpr std::int64_t kTryAgainAfter = 30'000'000'000;   // ns
constexpr std::size_t kMostForeign = 6;                   // changes, ...
constexpr std::int64_t kForeignWithin = 600'000'000'000;  // ... in ns
constexpr std::int64_t kLimitKnownFor = 5'000'000'000;    // ns
constexpr int kHeld = 4;                                  // readings, until a clock is held
constexpr int kHolds = 2400;                              // ..., until a limit is how the device is: 10 min at least
constexpr int kStaysOff = 16;                             // readings
constexpr std::int64_t kStaysFor = 8'000'000'000;         // ns
constexpr double kMoved = 0.1;                            // of the clocks set

}  // namespace

bool ClockWatch::alike(Megahertz a, Megahertz b) {
  const double apart = std::abs(a.value() - b.value());
  return apart <= kWithin_mhz || apart <= kWithin * std::max(a.value(), b.value());
}

void ClockWatch::set(Megahertz clock, std::int64_t now_ns) {
  if (clock != set_) {
    below_ = tries_ = 0;
    if (clock.value() == 0) found_.other = Megahertz(0), found_.limited_by = 0;
  }
  set_ = clock;
  set_ns_ = now_ns;
}

bool ClockWatch::due(std::int64_t now_ns, bool changes) const {
  if (set_.value() == 0) return false;
  const bool slow = changes ? now_ns - set_ns_ >= kMoving && now_ns - read_ns_ >= 2 * kEvery
                            : now_ns - set_ns_ >= kSettled && now_ns - read_ns_ >= kEvery;
  return slow;
}

ClockWatch::Advice ClockWatch::read(Megahertz clock, const device::ClockEvents& events, bool changes,
                                    std::int64_t now_ns) {
  read_ns_ = now_ns;
  const bool below = clock < set_;
  if (below && events.idle) return Advice::none;
  if (explained(clock, events, now_ns)) return Advice::none;
  if (stays(clock, now_ns)) return Advice::does_not_follow;
  if (alike(clock, set_)) return follows(now_ns);
  if (changes) return Advice::none;
  found_.set = set_;
  found_.other = clock;
  found_.limited_by = below && tries_ >= kTriesBelow ? static_cast<std::uint32_t>(kLimitedUnexplained) : 0;
  if (!below && tries_ >= kTriesAbove) return Advice::does_not_follow;
  if (below && ++below_ < kBelow) return Advice::none;
  if (below && tries_ >= kTriesBelow && now_ns - tried_ns_ < kTryAgainAfter) return Advice::none;
  ++tries_;
  tried_ns_ = now_ns;
  return Advice::set_again;
}

/// The device says why it is below its clock.
bool ClockWatch::explained(Megahertz clock, const device::ClockEvents& events, std::int64_t now_ns) {
  if (!(clock < set_) || alike(clock, set_) || !events.throttled()) return false;
  below_ = tries_ = 0;
  higher_ = 0;
  const bool new_cap = events.power_cap && set_ <= held_ && clock.value() < (1 - kLimited) * set_.value();
  if (new_cap && --holds_ <= 0) held_ = Megahertz(0);
  const std::uint32_t by = (new_cap ? kLimitedByPowerCap : 0U) | (events.thermal ? kLimitedByHeat : 0U) |
                           (events.power_brake ? kLimitedByPowerBrake : 0U);
  found_.set = set_;
  found_.other = by == 0 ? Megahertz(0) : clock;
  found_.limited_by = by;
  limited_ns_ = now_ns;
  return true;
}

/// The readings stay the same, whatever is set.
bool ClockWatch::stays(Megahertz clock, std::int64_t now_ns) {
  if (!alike(clock, stays_)) {
    stays_ = clock;
    stays_since_ns_ = now_ns;
    lowest_set_ = highest_set_ = set_;
    off_ = 0;
  }
  lowest_set_ = std::min(lowest_set_, set_);
  highest_set_ = std::max(highest_set_, set_);
  if (!alike(clock, set_)) ++off_;
  const bool moved = highest_set_.value() - lowest_set_.value() > kMoved * highest_set_.value();
  return moved && off_ >= kStaysOff && now_ns - stays_since_ns_ >= kStaysFor;
}

ClockWatch::Advice ClockWatch::follows(std::int64_t now_ns) {
  if (set_ > held_ && ++higher_ >= kHeld) {
    held_ = set_;
    holds_ = kHolds;
    higher_ = 0;
  } else if (set_ == held_) {
    ++holds_;
  }
  const bool again = tries_ > 0 && now_ns - tried_ns_ <= kAnswersWithin;
  if (again) {
    ++found_.foreign;
    found_.foreign_clock = found_.other;
    foreign_ns_.push_back(now_ns);
  }
  tries_ = below_ = 0;
  // A lower clock says nothing about the limit of a higher one.
  if (found_.limited_by == 0 || set_ >= found_.set || now_ns - limited_ns_ > kLimitKnownFor) {
    found_.other = Megahertz(0);
    found_.limited_by = 0;
  }
  while (!foreign_ns_.empty() && now_ns - foreign_ns_.front() > kForeignWithin) foreign_ns_.pop_front();
  return again && foreign_ns_.size() >= kMostForeign ? Advice::conflict : Advice::none;
}

std::string ClockWatch::why() const {
  const auto mhz = [](Megahertz clock) { return std::to_string(clock.value()) + " MHz"; };
  if (foreign_ns_.size() >= kMostForeign) {
    return "another process changes the GPU's clock again and again, the last time to " + mhz(found_.foreign_clock);
  }
  return "the GPU does not follow: it runs at " + mhz(found_.other.value() != 0 ? found_.other : stays_) + " where " +
         mhz(set_) + " is set; its energy is measured without plans";
}

}  // namespace perseus::clock_control
