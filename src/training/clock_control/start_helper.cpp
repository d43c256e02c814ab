#include "training/clock_control/start_helper.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/split.h"
#include "training/clock_control/mailbox.h"

extern "C" char** environ;

namespace perseus::clock_control {
namespace {

constexpr std::string_view kName = "perseus-clockd";

bool runs(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// The folder of this code: of the library that contains it, or of the program.
std::string own_folder() {
  Dl_info about{};
  if (::dladdr(reinterpret_cast<const void*>(&find_helper), &about) == 0 || about.dli_fname == nullptr) return {};
  return folder_of(about.dli_fname);
}

std::string program_folder() {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  path.resize(static_cast<std::size_t>(length));
  return folder_of(path);
}

}  // namespace

device::DeviceResult<std::string> find_helper(const std::string& given) {
  const char* named = ::secure_getenv("PERSEUS_CLOCKD");
  const std::string only = !given.empty() ? given : named != nullptr ? named : "";
  if (!only.empty()) {
    if (runs(only)) return only;
    return device::DeviceError{device::DeviceFault::no_driver,
                               fmt::format("the helper {}{} is not a program that can be run", only,
                                           given.empty() ? " (PERSEUS_CLOCKD)" : "")};
  }
  std::vector<std::string> folders;
  if (const std::string own = own_folder(); !own.empty()) {
    folders.push_back(own);
    folders.push_back(own + "/../bin");
  }
  if (const std::string program = program_folder(); !program.empty()) folders.push_back(program);
  for (const std::string_view folder : split(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "", ':')) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  for (const std::string& folder : folders) {
    std::string candidate = fmt::format("{}/{}", folder, kName);
    if (runs(candidate)) return candidate;
  }
  return device::DeviceError{device::DeviceFault::no_driver,
                             fmt::format("no {} beside this program or library ({}) or in $PATH", kName, own_folder())};
}

device::DeviceResult<pid_t> spawn_helper(const std::string& program, const std::vector<std::string>& arguments,
                                         const std::vector<int>& fds) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  // First move them above the numbers that they will take.
  std::vector<OwnedFd> sources;
  int error = 0;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const int wanted = 3 + static_cast<int>(i);
    if (fds[i] < 0) continue;
    sources.emplace_back(::fcntl(fds[i], F_DUPFD_CLOEXEC, 3 + static_cast<int>(fds.size())));
    if (!sources.back().valid()) error = errno;
    if (error == 0) error = ::posix_spawn_file_actions_adddup2(&files, sources.back().get(), wanted);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  // A process group of its own, so that signals of a terminal or launcher to the training process's group do not end
  // it, in the session of the training process (urgency.h).
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  if (error == 0) error = ::posix_spawn(&child, program.c_str(), &files, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    return device::DeviceError{device::DeviceFault::no_driver,
                               fmt::format("cannot run {}: {}", program, std::strerror(error))};
  }
  return child;
}

bool reap(pid_t child, double limit_s) {
  const std::int64_t until_ns = monotonic_ns() + static_cast<std::int64_t>(1e9 * limit_s);
  for (bool killed = false;;) {
    int status = 0;
    const pid_t done = ::waitpid(child, &status, killed ? 0 : WNOHANG);
    if (done == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (done < 0 && errno != EINTR) return false;  // the program's own code has waited for it
    if (!killed && monotonic_ns() >= until_ns) {
      ::kill(child, SIGKILL);
      killed = true;
      continue;
    }
    const timespec pause{0, 500'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace perseus::clock_control
