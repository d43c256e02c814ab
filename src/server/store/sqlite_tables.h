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

#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

namespace perseus::store {

class SqliteTables {
 public:
  explicit SqliteTables(SqliteConnection& connection) : connection_(connection) {}

  // Jobs.
  Appended append(const Append& append);
  Result<std::vector<StoredEvent>> read(const std::string& job, std::int64_t after);
  std::vector<JobIndexRow> jobs();
  void remove_job(const std::string& job);
  bool pack_job(const std::string& job);

  // Blobs.
  /// A blob with a damaged name is not found under its own name. So if there is one, no blob is reported as missing.
  bool has_damaged_names();
  void put_blob(const Blob& blob);
  Result<std::optional<std::string>> blob(const std::string& key, bool damaged_names);
  std::vector<std::string> blob_keys(const std::string& prefix);
  void remove_blob(const std::string& key);
  std::vector<HeldBlob> held_blobs();
  bool sweep(const Sweep& sweep);

  // History.
  void write_history(const std::vector<HistoryRow>& rows);
  std::vector<HistoryRow> history(const std::string& job, std::int64_t from_s, std::int64_t to_s);
  bool age_history(const AgeHistory& age);
  std::vector<HistoryBytes> history_bytes();
  void write_site_history(const std::vector<SiteRow>& rows);
  std::vector<SiteRow> site_history(std::int64_t from_s, std::int64_t to_s);

  // Claims.

  // Tokens.
  void put_token(const TokenRow& token);
  void revoke_token(const std::string& hash);
  Result<std::vector<TokenRow>> tokens();

 private:
  std::optional<JobIndexRow> index_row_of(const std::string& job);
  bool has_events(const std::string& job);
  void write_index(const JobIndexRow& row);
  void hold(const std::string& holder, const std::vector<std::string>& keys);
  /// Inserts a row whose last column, at `index`, is bytes.
  void put_bytes(SQLite::Statement& statement, int index, const std::string& bytes);
  void put_history(const HistoryRow& row);
  void age_history_of(const std::string& job, const AgeHistory& age);
  bool age_site_history(const AgeHistory& age);
  std::vector<std::string> unused_blobs(const Sweep& sweep, std::int64_t limit);
  /// True: it returned pages, and more may be free.
  bool return_free_pages();
  int pragma(const char* sql);

  SqliteConnection& connection_;
};

}  // namespace perseus::store
