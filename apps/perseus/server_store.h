// The store that `perseus serve` and `perseus token --data` open.
//
// Input: a directory for SQLite (made if it is not there), or a PostgreSQL URL. Output: the store. Errors: the store's,
// cannot_write for a directory that cannot be made. Cost: opening. Threads: as server/store/store.h.
#pragma once

#include <memory>
#include <string>

#include "server/store/store.h"

namespace perseus::cli {

/// Where in that directory SQLite's file is.
std::string sqlite_file_in(const std::string& data);
/// Files that this process makes from now on are its user's alone: a database says what a cluster trains.
void keep_to_ourselves();
Result<std::unique_ptr<store::Store>> open_server_store(const std::string& data, const std::string& database,
                                                        store::Post post);

}  // namespace perseus::cli
