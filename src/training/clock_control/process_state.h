// State of a process from /proc.
//
// Errors:  0 where the process or /proc does not exist.
// Threads: any.
#pragma once

#include <sys/types.h>

#include <string>

namespace perseus::clock_control {

/// The first 2048 bytes of a file of the kernel's; empty: it cannot be read.
std::string kernel_text(const std::string& path);

/// R running, S sleeping, D in the kernel, T stopped, t stopped by a debugger, Z ended.
char process_state(pid_t pid);

/// PID of that pidfd's process in this PID namespace; 0: it has ended, or has no number here.
pid_t process_of(int pidfd);

/// True if this process runs in a PID namespace of a container: when its process 1 ends, the kernel kills all others.
bool in_pid_namespace();

}  // namespace perseus::clock_control
