#include "serve/disk_watch.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace perseus::cli {
namespace {

/// A write-ahead log that is not checkpointed may grow to this size.
constexpr std::uint64_t kLeastFree = std::uint64_t{64} << 20;

routes::DiskHealth measure(const std::string& folder) {
  struct statvfs found {};
  if (statvfs(folder.c_str(), &found) != 0) return {0, fmt::format("cannot be measured: {}", std::strerror(errno))};
  routes::DiskHealth health;
  health.free_bytes = static_cast<std::uint64_t>(found.f_bavail) * found.f_frsize;
  if ((found.f_flag & ST_RDONLY) != 0) {
    health.problem = "read-only";
  } else if (health.free_bytes < kLeastFree) {
    health.problem = fmt::format("{} bytes free; needed: {}", health.free_bytes, kLeastFree);
  }
  return health;
}

}  // namespace

DiskWatch::DiskWatch(std::string folder, work::Executor& executor) : folder_(std::move(folder)), executor_(executor) {
  last_->health = measure(folder_);
}

routes::DiskHealth DiskWatch::look() {
  if (!std::exchange(last_->measuring, true)) {
    executor_.submit(work::Executor::Kind::store, [folder = folder_, last = last_]() -> std::function<void()> {
      return [last, health = measure(folder)] { *last = {health, false}; };
    });
  }
  return last_->health;
}

}  // namespace perseus::cli
