// How the clock of a GPU can be set from here: directly, through zeusd, or not at all. Sets nothing.
//
// Problem: NVML tells whether it may set clocks only when one is set, and that must not happen just to find out. Input:
// a selector. Output: the selector to control the GPU through, and why that one; for NVML it follows from the
// privileges of this process: root or CAP_SYS_ADMIN. A helper with other privileges than this process decides anew.
// Errors: none; no way is an answer. Cost: opens the GPU, may ask zeusd. Threads: any. Source: shared reference,
// gpu_control_and_metering, "Permissions".
#pragma once

#include <string>

#include "training/device/gpu.h"

namespace perseus::device {

struct ControlPath {
  std::string kind;      ///< "NVML", "zeusd", "AMD SMI", "simulated", "none"
  std::string selector;  ///< to give to open_gpu(); empty: none
  std::string why;
};

ControlPath control_path(const std::string& selector);

}  // namespace perseus::device
