// One connection to a SQLite file, with prepared statements: preparing one costs more than running it.
//
// Input:   SQL with ? or ?1, ?2 ... and values for them.
// Output:  statements, rows, and the error that a failure means for the caller.
// Errors:  thrown as SQLite::Exception, caught by the store, which makes them an Error by sqlite_error().
// Threads: one at a time.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "server/store/sql_store.h"

namespace perseus::sqlite {

/// The error by what the caller can do: a value that SQLite rejects is the caller's fault, everything else may be
/// transient. Clients of the server read the message, so it does not contain the file's path.
Error sqlite_error(const SQLite::Exception& exception);

/// A row of a statement, for stored_log.h.
struct SqliteRow {
  SQLite::Statement& statement;
  [[nodiscard]] std::string text(int column) const { return statement.getColumn(column).getString(); }
  [[nodiscard]] std::int64_t integer(int column) const { return statement.getColumn(column).getInt64(); }
  [[nodiscard]] double number(int column) const { return statement.getColumn(column).getDouble(); }
  [[nodiscard]] bool is_null(int column) const { return statement.isColumnNull(column); }
};

class SqliteConnection {
 public:
  explicit SqliteConnection(const std::string& path, int flags = SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      : database_(path, flags, kBusy_ms) {}

  SQLite::Database& database() { return database_; }

  template <class... Values>
  void run(const char* sql, const Values&... values) {
    SQLite::Statement& statement = bound(sql, values...);
    statement.exec();
    statement.reset();
  }

  /// Calls `take` with each row.
  template <class Take, class... Values>
  void each(const char* sql, Take take, const Values&... values) {
    SQLite::Statement& statement = bound(sql, values...);
    while (statement.executeStep()) take(SqliteRow{statement});
    statement.reset();
  }
  template <class Take, class... Values>
  void each_bytes(const char* sql, Take take, const Values&... values) {
    each(sql, std::move(take), values...);
  }

  /// After a failure: no statement in flight may keep the transaction open.
  void roll_back();

 private:
  static constexpr int kBusy_ms = 5000;

  SQLite::Statement& prepared(const char* sql);
  /// The statement, bound to the values; a string must outlive its use.
  template <class... Values>
  SQLite::Statement& bound(const char* sql, const Values&... values) {
    SQLite::Statement& statement = prepared(sql);
    int index = 0;
    (bind(statement, ++index, values), ...);
    return statement;
  }
  static void bind(SQLite::Statement& statement, int index, const std::string& text) {
    statement.bindNoCopy(index, text);
  }
  static void bind(SQLite::Statement& statement, int index, const store::Bytes& bytes) {
    statement.bindNoCopy(index, bytes.bytes.data(), static_cast<int>(bytes.bytes.size()));
  }
  static void bind(SQLite::Statement& statement, int index, double value) { statement.bind(index, value); }
  static void bind(SQLite::Statement& statement, int index, std::int64_t value) { statement.bind(index, value); }
  static void bind(SQLite::Statement& statement, int index, const std::optional<double>& value) {
    if (value)
      statement.bind(index, *value);
    else
      statement.bind(index);
  }

  SQLite::Database database_;
  std::map<std::string, std::unique_ptr<SQLite::Statement>, std::less<>> statements_;
};

}  // namespace perseus::sqlite
