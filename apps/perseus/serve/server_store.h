// The store that `perseus serve` and `perseus token --data` open.
//
// Input:   a directory for SQLite (created if missing), or a PostgreSQL URL.
// Output:  the store.
// Errors:  the store's, cannot_write for a directory that cannot be created.
// Threads: as server/store/store.h.
#pragma once

#include <memory>
#include <string>

#include "server/store/store.h"

namespace perseus::cli {

/// Path of SQLite's file in that directory.
std::string sqlite_file_in(const std::string& data);
/// From now on, new files of this process are accessible to its user alone: a database reveals what a cluster trains.
void keep_to_ourselves();
Result<std::unique_ptr<store::Store>> open_server_store(const std::string& data, const std::string& database,
                                                        store::Post post);

}  // namespace perseus::cli
