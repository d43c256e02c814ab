#include "server/sqlite/sqlite_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/percent_encode.h"
#include "server/sqlite/sqlite_schema.h"

namespace perseus::sqlite {
namespace {

bool means_no_room(int problem) { return problem == EROFS || problem == ENOSPC || problem == EDQUOT; }

struct KnownFileSystem {
  std::uint32_t type;
  FileSystem what;
};
constexpr std::array kFileSystems{KnownFileSystem{0x6969, {"NFS", true}},
                                  KnownFileSystem{0xFF534D42, {"SMB (cifs)", true}},
                                  KnownFileSystem{0xFE534D42, {"SMB (smb2)", true}},
                                  KnownFileSystem{0x517B, {"SMB", true}},
                                  KnownFileSystem{0x5346414F, {"AFS", true}},
                                  KnownFileSystem{0x00C36400, {"Ceph", true}},
                                  KnownFileSystem{0x0BD00BD0, {"Lustre", true}},
                                  KnownFileSystem{0x47504653, {"GPFS", true}},
                                  KnownFileSystem{0x19830326, {"BeeGFS", true}},
                                  KnownFileSystem{0x01161970, {"GFS2", true}},
                                  KnownFileSystem{0x7461636F, {"OCFS2", true}},
                                  KnownFileSystem{0x73757245, {"Coda", true}},
                                  KnownFileSystem{0x65735546, {"FUSE", false}},
                                  KnownFileSystem{0x01021997, {"9p", false}}};

}  // namespace

FileSystem file_system_of_type(long type) {
  // Some kernels' types are negative as a signed number of 32 bits.
  const auto* const found = std::ranges::find(kFileSystems, static_cast<std::uint32_t>(type), &KnownFileSystem::type);
  return found == kFileSystems.end() ? FileSystem{} : found->what;
}

FileSystem file_system_of(const std::string& directory) {
  struct statfs of {};
  if (::statfs(directory.c_str(), &of) != 0) return {};
  return file_system_of_type(of.f_type);
}

Status check_file_system(const std::string& directory) {
  const FileSystem found = file_system_of(directory);
  if (!found.shared) return Ok{};
  return Error{ErrorCode::conflict,
               fmt::format("{}: is on {}, where a SQLite database can be damaged; allowed: a local disk, or --database "
                           "URL (PostgreSQL)",
                           directory, found.name)};
}

Result<DatabaseLock> DatabaseLock::take(const std::string& database) {
  const std::string path = database + ".lock";
  DatabaseLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.is_held() && means_no_room(errno)) {
    lock.descriptor_ = OwnedFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!lock.is_held()) return lock;  // the lock file does not exist, so no server uses the database
  } else if (!lock.is_held()) {
    return Error{ErrorCode::cannot_write, fmt::format("{}: cannot be created: {}", path, std::strerror(errno))};
  }
  if (::flock(lock.descriptor_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::conflict, database +
                                          ": in use by another server; one at a time may open a SQLite file "
                                          "(on PostgreSQL, others stand by)"};
  }
  return lock;
}

Result<SqliteConnections> connect_sqlite(const std::string& path, const SqliteOptions& options) {
  auto writer = std::make_unique<SqliteConnection>(path);
  if (auto error = check_and_migrate(path, writer->database())) return *std::move(error);
  if (options.max_pages > 0) writer->database().exec(fmt::format("PRAGMA max_page_count = {}", options.max_pages));
  auto reader = std::make_unique<SqliteConnection>(path);
  // The system caches the file: a cache of 2 MB for each connection, the default, is memory that saves no reads.
  for (SqliteConnection* one : {writer.get(), reader.get()}) one->database().exec("PRAGMA cache_size = -512");
  return SqliteConnections{std::move(writer), std::move(reader)};
}

Result<SqliteConnections> connect_sqlite_read_only(const std::string& path) {
  std::error_code missing;
  const bool has_log = std::filesystem::file_size(path + "-wal", missing) > 0 && !missing;
  std::string uri = "file:" + percent_encode(path);
  // The only connection indexes the log in memory, without locks; without a log, the file is complete.
  uri += has_log ? "?mode=ro&vfs=unix-none" : "?immutable=1";
  auto reader = std::make_unique<SqliteConnection>(uri, SQLite::OPEN_READONLY | SQLite::OPEN_URI);
  if (has_log) reader->database().exec("PRAGMA locking_mode = EXCLUSIVE");
  if (auto wrong = check_present_version(path, reader->database())) return *std::move(wrong);
  return SqliteConnections{nullptr, std::move(reader)};
}

bool has_room_beside(const std::string& path) {
  const std::string name = path + ".room";
  const OwnedFd file(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid()) return false;
  const std::string page(1U << 16U, 'x');
  const bool written =
      ::write(file.get(), page.data(), page.size()) == static_cast<ssize_t>(page.size()) && ::fsync(file.get()) == 0;
  ::unlink(name.c_str());
  return written;
}

namespace {

constexpr int kEnoughPages = 1000;    // SQLite's own default
constexpr int kTooManyPages = 16000;  // 64 MB: commits never pause, so here they must wait

void checkpoint(sqlite3* database) {
  sqlite3_wal_checkpoint_v2(database, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

}  // namespace

WalCheckpointer::WalCheckpointer(const std::string& path, SQLite::Database& writer) : connection_(path) {
  connection_.database().exec("PRAGMA synchronous = FULL");
  sqlite3_wal_hook(writer.getHandle(), &WalCheckpointer::committed, this);
  thread_ = std::thread([this] { work(); });
}

WalCheckpointer::~WalCheckpointer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

int WalCheckpointer::committed(void* self, sqlite3* writer, const char* /*database*/, int pages) {
  if (pages >= kTooManyPages) {
    checkpoint(writer);
  } else if (pages >= kEnoughPages) {
    static_cast<WalCheckpointer*>(self)->want();
  }
  return SQLITE_OK;
}

void WalCheckpointer::want() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  wake_.notify_one();
}

void WalCheckpointer::work() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return wanted_ || stopping_; });
      if (stopping_) return;
      wanted_ = false;
    }
    checkpoint(connection_.database().getHandle());
  }
}

}  // namespace perseus::sqlite
