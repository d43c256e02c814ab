#include "demo/demo_scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "io/formats/file.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "perseus-demo-";
constexpr const char* kLockName = "in-use";
constexpr std::size_t kShownOfLog = 600;

/// Open and locked, or -1: another process has it, or it cannot be opened.
int lock_of(const fs::path& folder, int flags) {
  const int lock = open((folder / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  if (lock >= 0) close(lock);
  return -1;
}

bool is_ours(const fs::path& folder) {
  struct stat about {};
  return lstat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid();
}

/// Removes the folders of killed demos. A folder under construction has no lock file yet, and is kept.
void remove_abandoned(const fs::path& temporary) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(temporary, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix) || !is_ours(entry.path())) continue;
    const int lock = lock_of(entry.path(), 0);
    if (lock < 0) continue;
    fs::remove_all(entry.path(), ignored);
    close(lock);
  }
}

}  // namespace

Result<DemoScratch> DemoScratch::create(const std::string& wanted) {
  std::error_code error;
  std::string path = wanted;
  if (path.empty()) {
    const char* const given = std::getenv("TMPDIR");
    const fs::path temporary = given != nullptr && *given != '\0' ? given : "/tmp";
    remove_abandoned(temporary);
    path = (temporary / kPrefix).string() + "XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
      return Error{ErrorCode::cannot_write,
                   fmt::format("temporary directory {}: {}; set TMPDIR to a directory that can be written to",
                               temporary.string(), std::strerror(errno))};
    }
  } else {
    fs::create_directories(path, error);
    if (error) return Error{ErrorCode::cannot_write, fmt::format("--scratch {}: {}", path, error.message())};
  }
  const int lock = lock_of(path, O_CREAT);
  if (lock < 0) {
    if (access(path.c_str(), W_OK) != 0) return Error{ErrorCode::cannot_write, path + ": cannot be written to"};
    return Error{ErrorCode::conflict, path + ": another demo is using it"};
  }
  return DemoScratch(path, wanted.empty(), lock);
}

DemoScratch::DemoScratch(DemoScratch&& other) noexcept
    : path_(std::exchange(other.path_, {})), remove_(other.remove_), lock_(std::exchange(other.lock_, -1)) {}

DemoScratch::~DemoScratch() {
  std::error_code ignored;
  if (remove_ && !path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

std::string DemoScratch::file(std::string_view name) const { return (fs::path(path_) / name).string(); }

std::string DemoScratch::end_of_log(std::string_view name) const {
  const auto text = formats::read_file(file(name));
  if (!text || text->empty()) return {};
  const std::size_t from = text->size() > kShownOfLog ? text->find('\n', text->size() - kShownOfLog) : 0;
  return "\n" + text->substr(from == std::string::npos ? 0 : from);
}

}  // namespace perseus::cli
