#include "serve/open_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace perseus::cli {
namespace {

/// Databases, pipes, libraries: all descriptors but connections.
constexpr rlim_t kMostOwnFiles = 64;
/// Minimum at the start, besides those that the parent process left open.
constexpr rlim_t kLeastFiles = 48;

}  // namespace

Status check_files(rlim_t allowed) {
  std::error_code none_left;
  const std::filesystem::directory_iterator open("/proc/self/fd", none_left);
  rlim_t in_use = none_left == std::errc::too_many_files_open ? allowed : 0;
  if (!none_left) in_use = static_cast<rlim_t>(std::distance(begin(open), end(open)));
  if (allowed >= in_use + kLeastFiles) return Ok{};
  return Error{ErrorCode::unavailable,
               fmt::format("open files: {} (ulimit -n), of which {} are in use; allowed: at least {}", allowed, in_use,
                           in_use + kLeastFiles)};
}

rlim_t make_room_for(int connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t files = std::min(limit.rlim_cur, static_cast<rlim_t>(connections) + kMostOwnFiles);
  // With several threads, the kernel doubles its table of open files only after every processor has passed a quiescent
  // state, tens of milliseconds in which accepting stands still. So this enlarges the table now, by using its last
  // entry once.
  const int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, static_cast<int>(files) - 1);
  if (last >= 0) close(last);
  return limit.rlim_cur;
}

}  // namespace perseus::cli
