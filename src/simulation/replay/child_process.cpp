#include "simulation/replay/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

namespace perseus::replay {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kExecFailed = 127;

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(pid_t parent, const std::vector<char*>& arguments, const ChildOptions& options, int output,
                         int failure) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExecFailed);  // the parent died before the line above
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (!options.error_file.empty()) {
    const int file = open(options.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file >= 0) dup2(file, STDERR_FILENO);
  }
  dup2(output >= 0 ? output : STDERR_FILENO, STDOUT_FILENO);
  for (const int descriptor : options.inherited) fcntl(descriptor, F_SETFD, 0);
  execv(arguments[0], arguments.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t sent = write(failure, &why, sizeof why);
  _exit(kExecFailed);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const ChildOptions& options) {
  std::vector<char*> arguments;
  for (const std::string& argument : options.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const auto cannot = [&](int why) {
    return Error{ErrorCode::unavailable,
                 fmt::format("{}: cannot be started: {}", options.command.front(), std::strerror(why))};
  };
  std::array<int, 2> failure{-1, -1}, output{-1, -1};
  if (pipe2(failure.data(), O_CLOEXEC) != 0) return cannot(errno);
  if (options.pipe_output && pipe2(output.data(), O_CLOEXEC) != 0) return cannot(errno);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(parent, arguments, options, output[1], failure[1]);
  const int fork_error = errno;
  close(failure[1]);
  if (output[1] >= 0) close(output[1]);
  int why = pid < 0 ? fork_error : 0;
  if (pid > 0 && read(failure[0], &why, sizeof why) != sizeof why) why = 0;  // closed by exec: the program runs
  close(failure[0]);
  if (why != 0) {
    if (pid > 0) waitpid(pid, nullptr, 0);
    if (output[0] >= 0) close(output[0]);
    return cannot(why);
  }
  return ChildProcess(pid, output[0]);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      unread_(std::move(other.unread_)),
      end_(std::move(other.end_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(output_, other.output_);
  std::swap(unread_, other.unread_);
  std::swap(end_, other.end_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !ended()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0 && !end_) kill(pid_, number);
}

const std::optional<ChildProcess::End>& ChildProcess::ended() {
  int status = 0;
  if (!end_ && pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    if (WIFEXITED(status)) {
      end_ = End{WEXITSTATUS(status) == 0, fmt::format("ended with exit code {}", WEXITSTATUS(status))};
    } else {
      end_ = End{false, fmt::format("was killed by signal {}", WTERMSIG(status))};
    }
  }
  return end_;
}

bool ChildProcess::wait(double limit_s) {
  const auto until = Clock::now() + std::chrono::duration<double>(limit_s);
  while (!ended()) {
    if (Clock::now() >= until) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

std::string ChildProcess::read_line(double limit_s) {
  const auto until = Clock::now() + std::chrono::duration<double>(limit_s);
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0 || !output_.valid()) return {};
    pollfd polled{output_.get(), POLLIN, 0};
    if (poll(&polled, 1, static_cast<int>(left)) < 0 && errno != EINTR) return {};
    if (polled.revents == 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t n = read(output_.get(), buffer.data(), buffer.size());
    if (n <= 0) return {};
    unread_.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace perseus::replay
