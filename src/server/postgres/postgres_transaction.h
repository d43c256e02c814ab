// The transaction of a PostgreSQL store's writer: it collects appends, which share their round trips.
//
// Problem: an append of its own costs seven round trips; thousands of them wait together.
// Input:   operations in their order; any other operation first executes the appends before it.
// Output:  appends with their outcomes.
// Errors:  PostgresFailure; the caller rolls back.
// Cost:    seven round trips for a batch of appends.
// Threads: one.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "server/postgres/postgres_connection.h"
#include "server/store/store.h"

namespace perseus::postgres {

/// An append and its outcome, until its `done`.
struct PendingAppend {
  store::Append append;
  store::Appended outcome = store::Appended::conflict;
};

class PostgresTransaction {
 public:
  explicit PostgresTransaction(PostgresConnection& connection) : connection_(connection) {}

  /// `pending` must live until the transaction ends.
  void append(PendingAppend& pending);
  PostgresRows run(const char* sql, std::initializer_list<PostgresValue> values);
  // For sql_store.h.
  template <class... Values>
  void run(const char* sql, const Values&... values) {
    run(sql, {PostgresValue(values)...});
  }
  template <class Visit, class... Values>
  void each(const char* sql, Visit visit, const Values&... values) {
    flush();
    connection_.each(sql, visit, values...);
  }
  void put_blob(const store::Blob& blob);
  /// Freed space stays with PostgreSQL; its autovacuum reuses it.
  bool sweep(const store::Sweep& sweep) { return store::remove_unused(*this, sweep); }
  void write_history(const std::vector<store::HistoryRow>& rows);
  void write_site_history(const std::vector<store::SiteRow>& rows);

  /// Executes the appends.
  void flush();
  void commit();

 private:
  struct LockedJob {
    store::JobIndexRow row;                 ///< present row; an append overwrites what it changes
    const store::Append* newest = nullptr;  ///< of the accepted ones
  };

  void write_appends();
  void write_blob(const store::Blob& blob);
  void hold(const std::string& holder, const std::vector<std::string>& keys);
  /// The rows of all these jobs, locked in the order of their ids; new jobs are created empty.
  std::map<std::string, LockedJob> locked_jobs();
  void write_index(const std::map<std::string, LockedJob>& jobs);

  PostgresConnection& connection_;
  std::vector<PendingAppend*> appends_;
  std::size_t pending_bytes_ = 0;
};

}  // namespace perseus::postgres
