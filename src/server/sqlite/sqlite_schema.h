// The tables of a SQLite store: their migrations, and the checks before a file is used.
//
// Input:   the path, for messages, and an open database.
// Output:  tables of the present version.
// Errors:  invalid_input: the file belongs to another program or to a later version, or is damaged; cannot_write: it
//          has an earlier version and cannot be written. SQLite's exceptions pass through.
// Threads: one at a time.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace perseus::sqlite {

/// True if the file's header names this program.
bool is_sqlite_store(SQLite::Database& database);

/// For a file that can be written: checks and migrates it.
std::optional<Error> check_and_migrate(const std::string& path, SQLite::Database& database);

/// For a file that cannot be written.
std::optional<Error> check_present_version(const std::string& path, SQLite::Database& database);

}  // namespace perseus::sqlite
