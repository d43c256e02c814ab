// What the kernel says about a process, by /proc.
//
// Output:  name (as the kernel keeps it, at most 15 bytes), parent, and whether a signal (SIGSTOP) keeps it from
// running. Errors:  nothing where there is no such process. Cost:    reads one file. Threads: pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace perseus {

struct KernelState {
  std::string name;
  pid_t parent = 0;
  bool stopped = false;
};

std::optional<KernelState> kernel_state_of(pid_t pid);

}  // namespace perseus
