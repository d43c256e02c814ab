#include "server/sqlite/sqlite_connection.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace perseus::sqlite {

Error sqlite_error(const SQLite::Exception& exception) {
  const int code = exception.getErrorCode();
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return Error{ErrorCode::internal, fmt::format("database: damaged ({}); restore a backup", exception.what())};
  }
  const bool of_value = code == SQLITE_TOOBIG || code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH;
  return Error{of_value ? ErrorCode::invalid_input : ErrorCode::unavailable,
               fmt::format("database: {}", exception.what())};
}

SQLite::Statement& SqliteConnection::prepared(const char* sql) {
  auto& statement = statements_.try_emplace(sql, nullptr).first->second;
  if (!statement) statement = std::make_unique<SQLite::Statement>(database_, sql);
  statement->reset();
  return *statement;
}

void SqliteConnection::roll_back() {
  statements_.clear();
  // A full disk may already have caused a rollback.
  if (sqlite3_get_autocommit(database_.getHandle()) == 0) database_.tryExec("ROLLBACK");
}

}  // namespace perseus::sqlite
