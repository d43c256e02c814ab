// The default store: one SQLite file, nothing else to install.
//
// Problem: what was acknowledged survives kill -9 and a power cut at any moment. Input: the path of the file, created
// where there is none. Output, cost, threads: as store.h says; a writer thread (group_commit.h) and a second connection
// for reads, which see every committed write. Durability is SQLite's: write-ahead log, flushed at every commit
// (synchronous = FULL). Errors when opening: the path, and whether it cannot be created, is no database or a damaged
// one, was written by a later version, or is in use by another server; nothing is changed then. Later: `unavailable`
// where the disk is full or broken, and the next write tries again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/store/store.h"

namespace perseus::store {

struct SqliteOptions {
  /// The file may grow to so many pages of 4 KiB; 0: as SQLite has it. For a full disk in tests.
  std::int64_t max_pages = 0;
};

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, Post post, const SqliteOptions& options = {});

/// A consistent copy of the file in a new one, also while a server in another process works on it: Store::backup()
/// without opening a store. It appears whole or not at all, and is on disk when this returns.
Status back_up_sqlite(const std::string& path, const std::string& to);

}  // namespace perseus::store
