#include "server/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace perseus::metrics {
namespace {

/// Fields of /proc/self/stat, counted from 1 as in proc(5); the name in brackets may contain any character.
std::vector<double> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::vector<double> fields(3, 0);  // up to the state, the third
  std::istringstream rest(text.substr(name_end + 3));
  for (double field = 0; rest >> field;) fields.push_back(field);
  return fields;
}

double boot_time_s() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return 0;
}

}  // namespace

void add_process_metrics(MetricFamilies& to, const std::string& version) {
  to.gauge("perseus_build_info", "Version and compiler of the server", 1,
           {{"version", version}, {"compiler", __VERSION__}});
  constexpr std::size_t user_ticks = 14, system_ticks = 15, start_ticks = 22, resident_pages = 24;  // position, from 1
  const std::vector<double> stat = stat_fields();
  if (stat.size() >= resident_pages) {
    const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
    const auto at = [&](std::size_t place) { return stat[place - 1]; };
    to.counter("process_cpu_seconds_total", "User and system CPU time",
               (at(user_ticks) + at(system_ticks)) / ticks_per_s);
    to.gauge("process_resident_memory_bytes", "Resident memory",
             at(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
    if (const double boot_s = boot_time_s(); boot_s > 0) {
      to.gauge("process_start_time_seconds", "Start of the process, Unix time", boot_s + at(start_ticks) / ticks_per_s);
    }
  }
  std::error_code unreadable;
  const std::filesystem::directory_iterator open("/proc/self/fd", unreadable);
  if (!unreadable) to.gauge("process_open_fds", "Open file descriptors", std::distance(begin(open), end(open)));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    to.gauge("process_max_fds", "Limit of open file descriptors", limit.rlim_cur);
  }
}

}  // namespace perseus::metrics
