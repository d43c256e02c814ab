// Determines how this process can set the clock of a GPU: directly, through zeusd, or not at all. Sets nothing.
//
// Problem: NVML reveals whether it may set clocks only when one is set, and that must not happen just to find out.
// Input:   a selector.
// Output:  the selector to control the GPU through, and the reason; for NVML it follows from the privileges of this
//          process: root or CAP_SYS_ADMIN. A helper with other privileges than this process decides anew.
// Errors:  none; "not at all" is a valid result.
// Cost:    opens the GPU, may query zeusd.
// Threads: any.
// Source:  docs/device.md.
#pragma once

#include <string>

#include "training/device/gpu.h"

namespace perseus::device {

struct ControlPath {
  std::string kind;      ///< "NVML", "zeusd", "simulated", "none"
  std::string selector;  ///< to pass to open_gpu(); empty: none
  std::string why;
};

ControlPath control_path(const std::string& selector);

}  // namespace perseus::device
