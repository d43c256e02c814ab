// Real time must end for a process that computes without a pause.
#include "training/clock_control/urgency.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace perseus::clock_control {
namespace {

TEST(Urgency, ARunawayLosesRealTimeWithoutPrivileges) {
  constexpr int no_real_time = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (become_urgent() != Urgency::real_time) ::_exit(no_real_time);
    constexpr uid_t nobody = 65534;  // a user whom a limit (ulimit -r) permits real time has no other rights
    if (::setresuid(nobody, nobody, nobody) != 0) ::_exit(no_real_time);
    ::raise(SIGXCPU);
    ::_exit((::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_real_time) GTEST_SKIP() << "real time is not permitted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace perseus::clock_control
