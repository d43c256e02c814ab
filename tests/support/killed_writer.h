// A process that writes to a store and is killed at a moment of the test's choice.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>

namespace perseus::testing {

/// Runs `write` in a process of its own, which writes every sequence that was acknowledged to the pipe that it is given
/// and does not return; kills it after so many of them. Returns the last one, or `before` if there was none.
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
