// Runs perseus-clockd --daemon as a child of the test, with leases and socket in the test's folder.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/support/eventually.h"
#include "tests/support/signal_process.h"
#include "training/clock_control/daemon_protocol.h"

extern "C" char** environ;

namespace perseus::clock_control {

using testing::eventually;

class DaemonProcess {
 public:
  /// Reads $PERSEUS_RUNTIME_DIR from the environment of the test (LeaseFolder). Logs to `folder`/daemon.log.
  explicit DaemonProcess(const std::string& folder, std::vector<std::string> more = {})
      : socket_(folder + "/clockd.sock") {
    std::vector<std::string> arguments{PERSEUS_CLOCKD_PROGRAM, "--daemon", "--simulated", "--socket", socket_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, (folder + "/daemon.log").c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
    PERSEUS_CHECK(::posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environ) == 0, "no daemon");
    ::posix_spawn_file_actions_destroy(&files);
  }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;
  ~DaemonProcess() {
    if (pid_ > 0) (void)end(SIGTERM);
  }
  [[nodiscard]] bool listens() const {
    return eventually([this] { return daemon_listens(socket_); });
  }
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Its exit code; -1 if a signal ended it.
  int end(int signal) {
    testing::signal_process(pid_, signal);
    return status();
  }
  int status() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::string socket_;
  pid_t pid_ = 0;
};

}  // namespace perseus::clock_control
