// A server that writes to a database, and that the test kills at a chosen moment: perseus_store_writer
// (tests/server/store/programs), whose path is PERSEUS_STORE_WRITER.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "tests/support/signal_process.h"

namespace perseus::testing {

/// Lets a server write to the database of this kind (sqlite or postgres) and kills it after that many acknowledgments.
/// Returns the last acknowledged sequence, or `before` if there was none.
inline std::int64_t last_acknowledged_before_the_kill(const std::string& kind, const std::string& database, int until,
                                                      std::int64_t before) {
  int pipe[2];
  EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  std::string program = PERSEUS_STORE_WRITER, of_kind = kind, address = database;
  char* const arguments[] = {program.data(), of_kind.data(), address.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  pid_t writer = -1;
  const int failed = ::posix_spawn(&writer, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  if (failed != 0) {
    ::close(pipe[0]);
    ADD_FAILURE() << program << ": error " << failed;
    return before;
  }
  std::int64_t sequence = 0, last = before;
  const auto more = [&] { return ::read(pipe[0], &sequence, sizeof sequence) == sizeof sequence; };
  for (int i = 0; i < until && more(); ++i) {
    EXPECT_GT(sequence, last);
    last = sequence;
  }
  signal_process(writer, SIGKILL);
  int status = 0;
  ::waitpid(writer, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer failed by itself with " << WEXITSTATUS(status);
  while (more()) last = sequence;
  ::close(pipe[0]);
  return last;
}

}  // namespace perseus::testing
