// Reads processes and their states from /proc.
//
// Output:  all processes, and of each its name (as the kernel keeps it, at most 15 bytes), parent, state, whether a
//          signal (SIGSTOP) stops it, and its time on a processor.
// Errors:  an empty result where there is no such process.
// Cost:    reads one file a process.
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
  char state = 0;
  long cpu_ticks = 0;  ///< of itself, in user and kernel mode
};

std::optional<KernelState> kernel_state_of(pid_t pid);
std::vector<std::string> arguments_of(pid_t pid);
std::vector<pid_t> all_processes();

}  // namespace perseus::replay
