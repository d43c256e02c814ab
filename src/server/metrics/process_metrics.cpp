#include "server/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace perseus::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily family(MetricType type, const char* name, const char* help, double value) {
  prometheus::ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {name, help, type, {metric}};
}

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

std::vector<MetricFamily> process_metrics(const std::string& version) {
  using enum MetricType;
  std::vector<MetricFamily> families;
  prometheus::ClientMetric build;
  build.label = {{"version", version}, {"compiler", __VERSION__}};
  build.gauge.value = 1;
  families.push_back({"perseus_build_info", "Version and compiler of the server", Gauge, {build}});

  constexpr std::size_t user_ticks = 14, system_ticks = 15, start_ticks = 22, resident_pages = 24;  // position, from 1
  const std::vector<double> stat = stat_fields();
  if (stat.size() >= resident_pages) {
    const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
    const auto at = [&](std::size_t place) { return stat[place - 1]; };
    families.push_back(family(Counter, "process_cpu_seconds_total", "User and system CPU time",
                              (at(user_ticks) + at(system_ticks)) / ticks_per_s));
    families.push_back(family(Gauge, "process_resident_memory_bytes", "Resident memory",
                              at(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE))));
    if (const double boot_s = boot_time_s(); boot_s > 0) {
      families.push_back(family(Gauge, "process_start_time_seconds", "Start of the process, Unix time",
                                boot_s + at(start_ticks) / ticks_per_s));
    }
  }
  std::error_code unreadable;
  const std::filesystem::directory_iterator open("/proc/self/fd", unreadable);
  if (!unreadable) {
    families.push_back(family(Gauge, "process_open_fds", "Open file descriptors",
                              static_cast<double>(std::distance(begin(open), end(open)))));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.push_back(
        family(Gauge, "process_max_fds", "Limit of open file descriptors", static_cast<double>(limit.rlim_cur)));
  }
  return families;
}

}  // namespace perseus::metrics
