#include "simulation/replay/kernel_state.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace perseus::replay {

std::optional<KernelState> kernel_state_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);  // unlike the buffer's iterators it does not throw if the process ends during the read
  // "123 (name) T 1 ...": a name may contain blanks and parentheses.
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  std::istringstream rest(text.substr(close + 1));
  KernelState result;
  result.name = text.substr(open + 1, close - open - 1);
  if (!(rest >> result.state >> result.parent)) return std::nullopt;
  result.stopped = result.state == 'T' || result.state == 't';
  constexpr int between = 9;  // pgrp to cmajflt: utime and stime are the fields 14 and 15
  std::string skipped;
  for (int i = 0; i < between; ++i) rest >> skipped;
  long user = 0, system = 0;
  if (rest >> user >> system) result.cpu_ticks = user + system;
  return result;
}

std::vector<std::string> arguments_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

std::vector<pid_t> all_processes() {
  namespace fs = std::filesystem;
  std::vector<pid_t> processes;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const pid_t pid = std::atoi(entry->path().filename().c_str());  // 0: other entries
    if (pid > 0) processes.push_back(pid);
  }
  return processes;
}

}  // namespace perseus::replay
