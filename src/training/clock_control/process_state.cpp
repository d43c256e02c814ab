#include "training/clock_control/process_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace perseus::clock_control {

std::string kernel_text(const std::string& path) {
  std::string text(2048, '\0');
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? 0 : ::read(fd, text.data(), text.size());
  if (fd >= 0) ::close(fd);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

char process_state(pid_t pid) {
  if (pid <= 0) return 0;
  const std::string stat = kernel_text(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_ends = stat.rfind(')');  // the name may contain any character
  return name_ends == std::string::npos || name_ends + 2 >= stat.size() ? '\0' : stat[name_ends + 2];
}

pid_t process_of(int pidfd) {
  const std::string info = kernel_text(fmt::format("/proc/self/fdinfo/{}", pidfd));
  const std::size_t at = info.find("\nPid:");
  return at == std::string::npos ? 0 : std::max(0, std::atoi(info.c_str() + at + 5));
}

bool in_pid_namespace() {
  constexpr std::string_view initial = "pid:[4026531836]";  // PROC_PID_INIT_INO of the kernel
  std::array<char, 64> link{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", link.data(), link.size());
  return length > 0 && std::string_view(link.data(), static_cast<std::size_t>(length)) != initial;
}

}  // namespace perseus::clock_control
