// A process that writes to a store, and that the test kills at a chosen moment.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>

namespace perseus::testing {

/// Runs `write` in a child process. `write` sends every acknowledged sequence to the given pipe and does not return.
/// Kills the child after this many acknowledgments. Returns the last sequence, or `before` if there was none.
inline std::int64_t last_acknowledged_before_the_kill(const std::function<void(int pipe)>& write, int until,
                                                      std::int64_t before) {
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  const pid_t writer = ::fork();
  EXPECT_GE(writer, 0);
  if (writer == 0) {
    ::close(pipe[0]);
    write(pipe[1]);
    ::_exit(6);
  }
  ::close(pipe[1]);
  std::int64_t sequence = 0, last = before;
  const auto more = [&] { return ::read(pipe[0], &sequence, sizeof sequence) == sizeof sequence; };
  for (int i = 0; i < until && more(); ++i) {
    EXPECT_GT(sequence, last);
    last = sequence;
  }
  ::kill(writer, SIGKILL);
  int status = 0;
  ::waitpid(writer, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer failed by itself with " << WEXITSTATUS(status);
  while (more()) last = sequence;
  ::close(pipe[0]);
  return last;
}

}  // namespace perseus::testing
