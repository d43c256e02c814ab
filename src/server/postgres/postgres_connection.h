// One connection to PostgreSQL; the only module code that uses libpq.
//
// Problem: provide libpq's prepared statements, parameters and failures in the form that the store needs.
// Input:   SQL with $1, $2 ... and values for them: text (UTF-8), numbers, bytes, or arrays of these as array
//          literals.
// Output:  rows of text or of bytes.
// Errors:  thrown as PostgresFailure, caught by the store: `unavailable`, or invalid_input if the database
//          rejects a value.
// Cost:    a round trip per call.
// Threads: one at a time.
#pragma once

#include <libpq-fe.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "server/store/sql_store.h"

namespace perseus::postgres {

/// A function of libpq by its name, as the pointer that it is wanted as. Throws PostgresFailure: there is none.
struct LibpqFunction {
  const char* name;
  template <class Function>
  operator Function*() const {  // NOLINT(google-explicit-constructor)
    return reinterpret_cast<Function*>(find());
  }
  [[nodiscard]] void* find() const;
};
/// The functions of libpq, which is loaded when it is needed.
struct LibpqLibrary {
  decltype(&PQclear) clear = LibpqFunction{"PQclear"};
  decltype(&PQcmdTuples) cmd_tuples = LibpqFunction{"PQcmdTuples"};
  decltype(&PQconnectdbParams) connect_db_params = LibpqFunction{"PQconnectdbParams"};
  decltype(&PQconninfoFree) conninfo_free = LibpqFunction{"PQconninfoFree"};
  decltype(&PQconninfoParse) conninfo_parse = LibpqFunction{"PQconninfoParse"};
  decltype(&PQerrorMessage) error_message = LibpqFunction{"PQerrorMessage"};
  decltype(&PQexec) exec = LibpqFunction{"PQexec"};
  decltype(&PQexecPrepared) exec_prepared = LibpqFunction{"PQexecPrepared"};
  decltype(&PQfinish) finish = LibpqFunction{"PQfinish"};
  decltype(&PQfreemem) free_memory = LibpqFunction{"PQfreemem"};
  decltype(&PQgetisnull) get_is_null = LibpqFunction{"PQgetisnull"};
  decltype(&PQgetlength) get_length = LibpqFunction{"PQgetlength"};
  decltype(&PQgetvalue) get_value = LibpqFunction{"PQgetvalue"};
  decltype(&PQntuples) num_tuples = LibpqFunction{"PQntuples"};
  decltype(&PQprepare) prepare = LibpqFunction{"PQprepare"};
  decltype(&PQresultErrorField) result_error_field = LibpqFunction{"PQresultErrorField"};
  decltype(&PQresultStatus) result_status = LibpqFunction{"PQresultStatus"};
  decltype(&PQsetClientEncoding) set_client_encoding = LibpqFunction{"PQsetClientEncoding"};
  decltype(&PQsetNoticeProcessor) set_notice_processor = LibpqFunction{"PQsetNoticeProcessor"};
  decltype(&PQstatus) status = LibpqFunction{"PQstatus"};
};
const LibpqLibrary& libpq();

struct PostgresFailure {
  Error error;
  bool retry = false;  ///< the database aborted a transaction in favor of another (deadlock)
  bool lost = false;   ///< the connection broke
};

/// A parameter: its text or bytes, or NULL.
class PostgresValue {
 public:
  PostgresValue(std::string text) : text_(std::move(text)) {}            // NOLINT(google-explicit-constructor)
  PostgresValue(std::string_view text) : text_(text) {}                  // NOLINT(google-explicit-constructor)
  PostgresValue(std::int64_t number) : text_(std::to_string(number)) {}  // NOLINT(google-explicit-constructor)
  PostgresValue(double number);                                          // NOLINT(google-explicit-constructor)
  PostgresValue(const store::Bytes& bytes) : text_(bytes.bytes), is_bytes_(true) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool is_bytes() const { return is_bytes_; }

 private:
  std::string text_;
  bool is_bytes_ = false;
};

/// `{"a","b"}`, `{1,NULL,3}`: the literals for `$1::text[]` and similar parameters.
std::string array_literal(std::span<const std::string> texts);
std::string array_literal(std::span<const std::int64_t> numbers);
std::string array_literal(std::span<const std::optional<double>> numbers);

class PostgresRows {
 public:
  explicit PostgresRows(PGresult* result) : result_(result) {}
  [[nodiscard]] int size() const { return libpq().num_tuples(result_.get()); }
  [[nodiscard]] int affected() const;  ///< by an INSERT, UPDATE or DELETE
  [[nodiscard]] std::string text(int row, int column) const;
  [[nodiscard]] std::int64_t integer(int row, int column) const;
  [[nodiscard]] double number(int row, int column) const;
  [[nodiscard]] bool is_null(int row, int column) const { return libpq().get_is_null(result_.get(), row, column) != 0; }

 private:
  struct Clear {
    void operator()(PGresult* result) const { libpq().clear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

/// A row of the rows, for stored_log.h.
struct PostgresRow {
  const PostgresRows& rows;
  int row;
  [[nodiscard]] std::string text(int column) const { return rows.text(row, column); }
  [[nodiscard]] std::int64_t integer(int column) const { return rows.integer(row, column); }
  [[nodiscard]] double number(int column) const { return rows.number(row, column); }
  [[nodiscard]] bool is_null(int column) const { return rows.is_null(row, column); }
};

class PostgresConnection {
 public:
  /// How long a host may take to answer, unless the connection string sets it. Short where requests wait and a retry
  /// follows anyway; long at the start, where waiting for a busy database is better than giving up.
  enum class Patience { short_, long_ };
  /// Connects to a server that accepts writes.
  explicit PostgresConnection(const std::string& connection, Patience patience = Patience::short_);

  /// Several statements without parameters.
  PostgresRows script(const std::string& sql);
  /// One statement, prepared once; `sql` is a literal. `as_bytes`: the columns are bytes.
  PostgresRows run(const char* sql, std::span<const PostgresValue> values = {}, bool as_bytes = false);
  PostgresRows run(const char* sql, std::initializer_list<PostgresValue> values) {
    return run(sql, std::span(values.begin(), values.size()));
  }

  /// Calls `visit` with each row.
  template <class Visit, class... Values>
  void each(const char* sql, Visit visit, const Values&... values) {
    visit_rows(run(sql, {PostgresValue(values)...}), visit);
  }
  template <class Visit, class... Values>
  void each_bytes(const char* sql, Visit visit, const Values&... values) {
    visit_rows(run(sql, std::array{PostgresValue(values)...}, true), visit);
  }

  [[nodiscard]] bool lost() const { return libpq().status(connection_.get()) != CONNECTION_OK; }

 private:
  struct Finish {
    void operator()(PGconn* connection) const { libpq().finish(connection); }
  };
  template <class Visit>
  static void visit_rows(const PostgresRows& rows, const Visit& visit) {
    for (int row = 0; row < rows.size(); ++row) visit(PostgresRow{rows, row});
  }
  PostgresRows checked(PGresult* result);
  [[noreturn]] void fail(const PGresult* result) const;

  std::unique_ptr<PGconn, Finish> connection_;
  bool opened_ = false;
  std::unordered_map<const char*, std::string> prepared_;
};

}  // namespace perseus::postgres
