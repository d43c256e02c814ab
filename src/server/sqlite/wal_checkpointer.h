// Moves SQLite's write-ahead log into the database, on a thread and a connection of its own.
//
// Problem: SQLite itself does it within a commit, which would then have to write megabytes.
// Input:   the path, and the connection whose commits fill the log; it must outlive this object.
// Errors:  none: what a reader or a full disk prevents is left to the next checkpoint.
// Cost:    a thread; a wake-up per 1000 pages of 4 KiB.
// Threads: the constructor's and destructor's; commits on any one thread.
#pragma once

#include <sqlite3.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "server/sqlite/sqlite_connection.h"

namespace perseus::sqlite {

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
