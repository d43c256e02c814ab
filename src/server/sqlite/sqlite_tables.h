// The statements of a SQLite store on its tables; each method runs within the caller's transaction.
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
  std::vector<store::JobIndexRow> jobs();
  void remove_job(const std::string& job);
  bool pack_job(const std::string& job);

  // Blobs.
  /// A blob with a damaged name is not found under its own name. So if there is one, no blob is reported as missing.
  bool has_damaged_names();
  void put_blob(const store::Blob& blob);
  Result<std::optional<std::string>> blob(const std::string& key, bool damaged_names);
  std::vector<std::string> blob_keys(const std::string& prefix);
  void remove_blob(const std::string& key);
  std::vector<store::HeldBlob> held_blobs();
  bool sweep(const store::Sweep& sweep);

  // History.
  void write_history(const std::vector<store::HistoryRow>& rows);
  std::vector<store::HistoryRow> history(const std::string& job, std::int64_t from_s, std::int64_t to_s);
  bool age_history(const store::AgeHistory& age);
  std::vector<store::HistoryBytes> history_bytes();
  void write_site_history(const std::vector<store::SiteRow>& rows);
  std::vector<store::SiteRow> site_history(std::int64_t from_s, std::int64_t to_s);

  // Claims.

  // Tokens.
  void put_token(const store::TokenRow& token);
  void revoke_token(const std::string& hash);
  Result<std::vector<store::TokenRow>> tokens();

 private:
  std::optional<store::JobIndexRow> index_row_of(const std::string& job);
  bool has_events(const std::string& job);
  void write_index(const store::JobIndexRow& row);
  void hold(const std::string& holder, const std::vector<std::string>& keys);
  /// Inserts a row whose last column, at `index`, is bytes.
  void put_bytes(SQLite::Statement& statement, int index, const std::string& bytes);
  void put_history(const store::HistoryRow& row);
  void age_history_of(const std::string& job, const store::AgeHistory& age);
  bool age_site_history(const store::AgeHistory& age);
  std::vector<std::string> unused_blobs(const store::Sweep& sweep, std::int64_t limit);
  /// True: it returned pages, and more may be free.
  bool return_free_pages();
  int pragma(const char* sql);

  SqliteConnection& connection_;
};

}  // namespace perseus::sqlite
