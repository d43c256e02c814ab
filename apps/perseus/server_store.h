// The store that `perseus serve` and `perseus token --data` open.
//
// Input: a directory for SQLite (made if it is not there), or a PostgreSQL URL. Output: the store. Errors: the store's,
// cannot_write for a directory that cannot be made. Cost: opening. Threads: as store/store.h.
#pragma once

#include <memory>
#include <string>

#include "store/store.h"

namespace perseus {

/// Where in that directory SQLite's file is.
std::string sqlite_file_in(const std::string& data);
/// Files that this process makes from now on are its user's alone: a database says what a cluster trains.
void keep_to_ourselves();
Result<std::unique_ptr<Store>> open_server_store(const std::string& data, const std::string& database, Post post);

}  // namespace perseus
