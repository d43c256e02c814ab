// The statements of a SQLite store on its tables, besides those of shared_tables.h; each method runs within the
// caller's transaction.
//
// Input:   a connection with the tables of sqlite_schema.h.
// Output:  as in store.h.
// Errors:  as in store.h for damaged rows; SQLite's exceptions pass through.
// Cost:    some microseconds per row.
// Threads: one at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/sqlite/sqlite_connection.h"
#include "server/store/store.h"

namespace perseus::sqlite {

class SqliteTables {
 public:
  explicit SqliteTables(SqliteConnection& connection) : connection_(connection) {}

  // Jobs.
  store::Appended append(const store::Append& append);
  Result<std::vector<store::StoredEvent>> read(const std::string& job, std::int64_t after);
  bool pack_job(const std::string& job);

  // Blobs.
  /// A blob with a damaged name is not found under its own name. So if there is one, no blob is reported as missing.
  bool has_damaged_names();
  void put_blob(const store::Blob& blob);
  Result<std::optional<std::string>> blob(const std::string& key, bool damaged_names);
  std::vector<std::string> blob_keys(const std::string& prefix);
  bool sweep(const store::Sweep& sweep);

  // History.
  void write_history(const std::vector<store::HistoryRow>& rows);
  void write_site_history(const std::vector<store::SiteRow>& rows);
  // For age_history() of shared_tables.h.
  template <class... Values>
  void run(const char* sql, const Values&... values) {
    connection_.run(sql, values...);
  }
  template <class Visit, class... Values>
  void each(const char* sql, Visit visit, const Values&... values) {
    connection_.each(sql, visit, values...);
  }

 private:
  std::optional<store::JobIndexRow> index_row_of(const std::string& job);
  bool has_events(const std::string& job);
  void write_index(const store::JobIndexRow& row);
  void hold(const std::string& holder, const std::vector<std::string>& keys);
  /// Inserts a row whose last column, at `index`, is bytes.
  void put_bytes(SQLite::Statement& statement, int index, const std::string& bytes);
  std::vector<std::string> unused_blobs(const store::Sweep& sweep, std::int64_t limit);
  /// True: it returned pages, and more may be free.
  bool return_free_pages();
  int pragma(const char* sql);

  SqliteConnection& connection_;
};

}  // namespace perseus::sqlite
