// The default store: one SQLite file, without other software to install.
//
// Problem: acknowledged writes must survive kill -9 and a power failure at any moment.
// Input:   the path of the file, which is created if it does not exist.
// Output:  as in store.h; a writer thread (group_commit.h) and a second connection for reads, which see every
//          committed write. Durability is SQLite's: write-ahead log, flushed at every commit (synchronous = FULL).
// Errors:  when opening: the path, and the reason: it cannot be created, is no database or a damaged one, was written
//          by a later version, or is in use by another server; nothing is changed then. Later: `unavailable` if the
//          disk is full or broken; the next write tries again.
// Cost:    as in store.h.
// Threads: as in store.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/store/store.h"

namespace perseus::sqlite {

struct SqliteOptions {
  /// Limit of the file's size in pages of 4 KiB; 0: SQLite's own. For a full disk in tests.
  std::int64_t max_pages = 0;
};

Result<std::unique_ptr<store::Store>> open_sqlite_store(const std::string& path, store::Post post,
                                                        const SqliteOptions& options = {});

/// In memory, for tests: a write runs within its call, and `done` too.
std::unique_ptr<store::Store> sqlite_store_in_memory();

}  // namespace perseus::sqlite
