// Compares the positions that a device reports (device_progress.h) with the steps that its events complete.
//
// Input:   clocks that the helper has set at device time; completed steps, with times of the device's events.
// Output:  the delay from the device passing a boundary to the helper's call for the clock behind it; whether positions
//          do not arrive although the device has completed the work before them.
// Cost:    a comparison per computation.
// Threads: one; reached_to_call() any.
#pragma once

#include <cstdint>
#include <deque>

#include "training/client/step_recorder.h"
#include "training/clock_control/applied_clocks.h"
#include "training/clock_control/latency_histogram.h"

namespace perseus::client {

class DevicePositions {
 public:
  /// A clock that was due at a position. Call in order, before completed() of its step.
  void applied(const clock_control::AppliedClock& clock) { applied_.push_back(clock); }
  /// The device has completed the step, whose marks are on the host's clock.
  void completed(const Step& step);
  /// True if `position`, the newest that the device has reported, stayed behind completed steps for a second.
  bool stays_behind(const Step& step, std::uint32_t position, double now_s);

  [[nodiscard]] const clock_control::LatencyHistogram& reached_to_call() const { return reached_to_call_; }

 private:
  std::deque<clock_control::AppliedClock> applied_;  ///< at device time, of steps that are not completed yet
  clock_control::LatencyHistogram reached_to_call_;
  double behind_since_s_ = 0;  ///< 0: it is not behind
};

}  // namespace perseus::client
