// A separate training process for tests that suspend or kill it.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "simulation/simulated_gpu/simulated_gpu.h"
#include "tests/support/eventually.h"
#include "tests/support/signal_process.h"
#include "training/clock_control/clock_controller.h"

namespace perseus::clock_control {

using testing::eventually;

/// Sets 700 MHz and waits until it is killed.
inline pid_t start_training_process(const ClockControllerOptions& options) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  auto started = ClockController::start(options);
  if (!started) ::_exit(1);
  (*started)->set(Megahertz(700));
  for (;;) ::pause();
}

/// Checks that suspending restores its clock, resuming sets it again, and killing restores it. Ends the process.
inline void expect_clock_follows_suspension(pid_t training, simulated_gpu::SimulatedGpu& gpu) {
  ASSERT_TRUE(eventually([&] { return gpu.locked(); }));
  testing::signal_process(training, SIGSTOP);
  EXPECT_TRUE(eventually([&] { return !gpu.locked(); }));
  testing::signal_process(training, SIGCONT);
  EXPECT_TRUE(eventually([&] { return gpu.clock() == Megahertz(700); }));
  testing::signal_process(training, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !gpu.locked(); }));
  ::waitpid(training, nullptr, 0);
}

}  // namespace perseus::clock_control
