// What a GPU can do for this system, measured: the energy counter, and (only when asked) how its clock changes.
//
// Problem: how often the counter moves, whether it agrees with the power sensor, and how long a clock takes is in no
// manual and differs between GPUs. Input: a GPU; limits of time. Output: values, medians over what was seen. Errors: as
// values with their reason; a GPU without a counter is an answer. Cost: examine_counter blocks for at most `at_most`,
// reading some 500 times a second; examine_switching changes clocks and gives them back, and takes a second or so.
// Threads: one a GPU. Source: shared reference, gpu_control_and_metering, sections 4, 5 and 10.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "training/device/gpu.h"

namespace perseus::device {

struct DriverPresence {
  std::string name;  ///< "NVML", "zeusd", "AMD SMI"
  bool present = false;
  std::string words;  ///< its version, or why it is not there
};

std::vector<DriverPresence> examine_drivers();

struct CounterExamination {
  bool present = false;
  std::string why;   ///< not present
  int changes = 0;   ///< seen
  Seconds refresh;   ///< median time between two; 0: too few were seen
  double ratio = 0;  ///< the counter's energy over that of the power sensor; 0: not known
  [[nodiscard]] bool agrees() const { return ratio == 0 || (ratio > 0.5 && ratio < 2); }
};

/// Until `changes` were seen or `at_most` has passed.
CounterExamination examine_counter(Gpu& gpu, Seconds at_most, int changes = 20);

struct SwitchExamination {
  bool done = false;
  std::string why;                 ///< not done
  bool touched = false;            ///< the clock is, or may have been, locked
  int switches = 0;                ///< that were seen to arrive
  int not_reached = 0;             ///< that did not arrive within half a second
  Seconds call_p50, call_p99;      ///< how long the call blocks
  Seconds settle_p50, settle_p99;  ///< from the call until the GPU has the clock
  bool restored = false;           ///< the lock was given back, and the driver said yes
  Megahertz after;                 ///< the clock after that
};

/// Changes the clock `switches` times between random supported ones; `go_on` false: gives it back and ends. The caller
/// holds the lease on the clock. A GPU that was not touched is not reset.
SwitchExamination examine_switching(Gpu& gpu, int switches, const std::function<bool()>& go_on);

}  // namespace perseus::device
