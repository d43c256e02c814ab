// Opens the file of a SQLite store: its lock, the connections, and what is possible on a full or read-only disk.
//
// Input:   the path.
// Output:  a lock and connections.
// Errors:  conflict: another server uses the file; those of sqlite_schema.h; cannot_write. SQLite's exceptions pass
//          through.
// Threads: one at a time.
#pragma once

#include <sqlite3.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/owned_fd.h"
#include "base/result.h"
#include "server/sqlite/sqlite_connection.h"
#include "server/sqlite/sqlite_store.h"

namespace perseus::sqlite {

/// The lock that excludes other servers; its end, also by the process's, releases it.
class DatabaseLock {
 public:
  static Result<DatabaseLock> take(const std::string& database);
  /// False: there is no space for the lock's file, and another server would find it missing too.
  [[nodiscard]] bool is_held() const { return descriptor_.valid(); }

 private:
  explicit DatabaseLock(int descriptor) : descriptor_(descriptor) {}
  OwnedFd descriptor_;
};

/// The file system on which a directory is, by its number in statfs(2).
struct FileSystem {
  std::string_view name;  ///< empty: none that other hosts may share, as far as is known
  bool shared = false;    ///< other hosts may open the same file, and neither flock() nor SQLite's log excludes them
};
FileSystem file_system_of_type(long type);
FileSystem file_system_of(const std::string& directory);
/// conflict: the directory is on a shared file system, where SQLite's write-ahead log would be damaged.
Status check_file_system(const std::string& directory);

struct SqliteConnections {
  std::shared_ptr<SqliteConnection> writer;  ///< null: writes are not possible
  std::shared_ptr<SqliteConnection> reader;
};

/// Checks and migrates the file.
Result<SqliteConnections> connect_sqlite(const std::string& path, const SqliteOptions& options);

/// Without a write, a lock or a shared memory file, none of which is possible.
Result<SqliteConnections> connect_sqlite_read_only(const std::string& path);

/// Checks whether a page can be written beside the database, which costs less than opening it.
bool has_room_beside(const std::string& path);

/// Moves SQLite's write-ahead log into the database, on a thread and a connection of its own: SQLite itself does it
/// within a commit, which would then have to write megabytes. What a reader or a full disk prevents is left to the next
/// time.
class WalCheckpointer {
 public:
  WalCheckpointer(const std::string& path, SQLite::Database& writer);
  WalCheckpointer(const WalCheckpointer&) = delete;
  WalCheckpointer& operator=(const WalCheckpointer&) = delete;
  ~WalCheckpointer();

 private:
  static int committed(void* self, sqlite3* writer, const char* database, int pages);
  void want();
  void work();

  SqliteConnection connection_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool wanted_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perseus::sqlite
