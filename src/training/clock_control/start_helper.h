// Finds and starts perseus-clockd from a process that has threads, CUDA and children of its own.
//
// Problem: fork() in such a process is unsafe, its files must not leak into the helper, its signal mask and working
//          directory must not matter, and its wait() must not see the helper.
// Input:   options.
// Output:  file descriptors, closed on exec.
// Errors:  DeviceError no_driver that names the program and why it does not run.
// Cost:    vfork and exec, some ms.
// Threads: any.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/owned_fd.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {

/// Path of the program: `given`; if empty, the path that ClockControllerOptions::helper describes.
device::DeviceResult<std::string> find_helper(const std::string& given);

/// Runs the program with those arguments (without the program's name); `fds` become 3, 4, 5, ... there, -1 is
/// skipped; of other files only the standard streams are inherited.
device::DeviceResult<pid_t> spawn_helper(const std::string& program, const std::vector<std::string>& arguments,
                                         const std::vector<int>& fds);

/// Waits for that child to end, at most that long; then kills it. True: its exit status was 0.
bool reap(pid_t child, double limit_s);

}  // namespace perseus::clock_control
