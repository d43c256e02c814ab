// What the kernel says about processes, by /proc.
//
// Output:  all processes, and of each name (as the kernel keeps it, at most 15 bytes), parent, and whether a signal
// (SIGSTOP) keeps it from running. Errors:  nothing where there is no such process. Cost:    reads one file a process.
// Threads: pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace perseus::replay {

struct KernelState {
  std::string name;
  pid_t parent = 0;
  bool stopped = false;
};

std::optional<KernelState> kernel_state_of(pid_t pid);
std::vector<std::string> arguments_of(pid_t pid);
std::vector<pid_t> all_processes();

}  // namespace perseus::replay
