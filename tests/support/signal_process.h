// Sends a signal to one process.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <csignal>

namespace perseus::testing {

/// kill(2), to which 0 is this test's process group, ctest with it, and -1 every process: here a process that is not
/// known, or no longer, is a failure, and nobody gets the signal. Returns 0 if it was sent.
inline int signal_process(pid_t process, int signal) {
  EXPECT_GT(process, 0) << "no process for signal " << signal;
  return process > 0 ? ::kill(process, signal) : -1;
}

}  // namespace perseus::testing
