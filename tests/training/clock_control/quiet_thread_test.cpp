#include "training/clock_control/quiet_thread.h"

#include <gtest/gtest.h>

#include <new>

namespace perseus::clock_control {
namespace {

TEST(QuietThread, RunsAgainAfterAnExceptionAndBlocksSignals) {
  int runs = 0, blocked = 0;
  std::thread thread = start_quiet_thread([&] {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked += ::sigismember(&mask, SIGTERM) + ::sigismember(&mask, SIGUSR1);
    if (++runs < 3) throw std::bad_alloc();
  });
  ASSERT_TRUE(thread.joinable());
  thread.join();
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(blocked, 2 * runs);
  sigset_t own;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(::sigismember(&own, SIGUSR1), 0);
}

}  // namespace
}  // namespace perseus::clock_control
