// Decides whether the device follows the clocks that the helper sets, and what to do if not.
//
// A device within 2 % (or 20 MHz) of its clock follows. Below it with a reason (power cap, heat, power brake) it is
// limited, and setting the clock again would not help; a power cap is how the device is, not a limit, below a clock
// that it never held, or that it was kept below for ten minutes and for as long as it had held it. Otherwise the clock
// is set again, at once where the device is above it, and below it after the second reading: if it holds then, another
// process had changed it. Six such changes within ten minutes are a conflict. A device that stays above its clock, or
// whose clock stays the same while the clocks set move by more than a tenth, does not follow at all: this takes 3 to 30
// s. Below its clock without a reason it is limited, unexplained.
//
// Problem: a lock can be reset, replaced, clipped or ignored, and the driver does not say so.
// Input:   each clock that was set; readings of the device, every kEvery while the clock stays, and of clocks that
//          change all the time, just before the next change.
// Output:  what to do; what is known, for the training process.
// Source:  docs/clock_control.md.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/units.h"
#include "training/clock_control/device_clock.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {

class ClockWatch {
 public:
  static constexpr std::int64_t kEvery = 250'000'000;    // ns
  static constexpr std::int64_t kSettled = 100'000'000;  // since the clock was set: the device has had time to change
  static constexpr std::int64_t kMoving = 4'000'000;     // the same, for a clock that is about to change

  enum class Advice {
    none,
    set_again,
    conflict,        ///< give up: another process changes the clock again and again
    does_not_follow  ///< give up
  };

  /// Within the tolerance.
  [[nodiscard]] static bool alike(Megahertz a, Megahertz b);
  /// The device has accepted that clock; 0: it was given back.
  void set(Megahertz clock, std::int64_t now_ns);
  /// A reading is due. `changes`: another clock is about to be set.
  [[nodiscard]] bool due(std::int64_t now_ns, bool changes) const;
  Advice read(Megahertz clock, const device::ClockEvents& events, bool changes, std::int64_t now_ns);
  [[nodiscard]] const DeviceClock& found() const { return found_; }
  /// For a log, after an advice to give up.
  [[nodiscard]] std::string why() const;

 private:
  [[nodiscard]] bool explained(Megahertz clock, const device::ClockEvents& events, std::int64_t now_ns);
  [[nodiscard]] bool stays(Megahertz clock, std::int64_t now_ns);
  Advice follows(std::int64_t now_ns);

  DeviceClock found_;
  Megahertz set_, held_;  ///< held_: the highest that the device was seen to hold for a while; 0: none
  int holds_ = 0;         ///< readings that held it and kHolds, less those that a power cap kept below it
  int higher_ = 0;        ///< readings that held a higher one since the device was limited last
  std::int64_t set_ns_ = 0, read_ns_ = 0, tried_ns_ = 0, limited_ns_ = 0;
  int below_ = 0;  ///< unexplained readings in a row
  int tries_ = 0;  ///< the clock was set again so often, and the device has not followed since
  std::deque<std::int64_t> foreign_ns_;
  // Readings that stay the same.
  Megahertz stays_, lowest_set_, highest_set_;
  int off_ = 0;
  std::int64_t stays_since_ns_ = 0;
};

}  // namespace perseus::clock_control
