// Measures what a GPU can do for this system: the energy counter, and (only on request) how its clock changes.
//
// Problem: how often the counter moves, whether it agrees with the power sensor, and how long a clock takes is in no
//          manual and differs between GPUs.
// Input:   a GPU; limits of time.
// Output:  values, medians over the samples.
// Errors:  as values with their reason; a GPU without a counter is a valid result.
// Cost:    examine_counter blocks for at most `at_most`, reading some 500 times a second; examine_switching changes
//          clocks and gives them back, and takes a second or so.
// Threads: one a GPU.
// Source:  docs/device.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "training/device/gpu.h"

namespace perseus::device {

struct DriverPresence {
  std::string name;  ///< "NVML", "zeusd"
  bool present = false;
  std::string words;  ///< its version, or why it is not present
};

std::vector<DriverPresence> examine_drivers();

struct CounterExamination {
  bool present = false;
  std::string why;   ///< not present
  int changes = 0;   ///< observed
  int backward = 0;  ///< of these: to a lower value
  Seconds refresh;   ///< median time between two; 0: too few observed
  double ratio = 0;  ///< the counter's energy over that of the power sensor; 0: not known
  [[nodiscard]] bool agrees() const { return ratio == 0 || (ratio > 0.77 && ratio < 1.3); }
};

/// Runs until it has observed `changes` or `at_most` has passed.
CounterExamination examine_counter(Gpu& gpu, Seconds at_most, int changes = 20);

struct SwitchExamination {
  bool done = false;
  std::string why;                 ///< not done
  bool touched = false;            ///< the clock is, or may have been, locked
  int switches = 0;                ///< that arrived
  int not_reached = 0;             ///< that did not arrive within half a second
  std::string remark;              ///< the GPU runs at other clocks than those that are set
  Seconds call_p50, call_p99;      ///< how long the call blocks
  Seconds settle_p50, settle_p99;  ///< from the call until the GPU has the clock
  bool restored = false;           ///< the lock was given back, and the driver confirmed it
  Megahertz after;                 ///< the clock after that
};

/// Changes the clock `switches` times between random supported ones; if `go_on` returns false, gives it back and
/// ends. The caller holds the lease on the clock. An untouched GPU is not reset.
SwitchExamination examine_switching(Gpu& gpu, int switches, const std::function<bool()>& go_on);

}  // namespace perseus::device
