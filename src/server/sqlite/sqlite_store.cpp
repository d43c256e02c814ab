#include "server/sqlite/sqlite_store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "server/sqlite/sqlite_backup.h"
#include "server/sqlite/sqlite_file.h"
#include "server/sqlite/sqlite_schema.h"
#include "server/store/sql_store.h"

namespace perseus::sqlite {
namespace {

std::int64_t checksum_of_name(std::string_view key) { return store::Checksum().add(key).value(); }

bool is_right_name(const SqliteRow& key_and_crc) {
  return checksum_of_name(key_and_crc.text(0)) == key_and_crc.integer(1);
}

/// The statements on the tables besides those of sql_store.h; each method runs within the caller's transaction.
class SqliteTables {
 public:
  explicit SqliteTables(SqliteConnection& connection) : connection_(connection) {}

  store::Appended append(const store::Append& append) {
    store::JobIndexRow present = store::index_row_of(connection_, append.job).value_or(store::JobIndexRow{});
    const auto events = store::accept_append(append, present);
    if (!events) return store::Appended::conflict;
    for (const store::EventRow& event : *events) {
      connection_.run("INSERT INTO events VALUES(?, ?, ?, ?)", append.job, event.sequence, *event.body, event.crc);
    }
    const store::JobIndexRow row = store::index_after(append, present);
    connection_.run("INSERT OR REPLACE INTO jobs VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row.job, row.state, row.name,
                    row.created_s, row.updated_s, row.next_wake_s, row.last_sequence, row.summary, row.bytes,
                    row.packed, store::checksum_of(row));
    for (const store::Blob& blob : append.blobs) put_blob(blob);
    hold(store::holder_of_job(append.job), append.holds);
    return store::Appended::committed;
  }

  /// A blob with a damaged name is not found under its own name. So if there is one, no blob is reported as missing.
  bool has_damaged_names() {
    bool damaged = false;
    connection_.each("SELECT key, key_crc FROM blobs",
                     [&](const SqliteRow& found) { damaged = damaged || !is_right_name(found); });
    return damaged;
  }
  void put_blob(const store::Blob& blob) {
    connection_.run("INSERT OR REPLACE INTO blobs VALUES(?, ?, ?, ?)", blob.key, checksum_of_name(blob.key),
                    store::checksum_of_blob(blob.key, blob.bytes), store::Bytes{blob.bytes});
    connection_.run("DELETE FROM unused WHERE key = ?", blob.key);
    connection_.run("DELETE FROM holds WHERE holder = ?", blob.key);
    hold(blob.key, blob.holds);
  }
  Result<std::optional<std::string>> blob(const std::string& key, bool damaged_names) {
    auto bytes = store::read_blob(connection_, key);
    if (bytes && !*bytes && damaged_names) {
      return store::damaged_in_database(fmt::format("'{}' is missing, and a stored name", key));
    }
    return bytes;
  }
  std::vector<std::string> blob_keys(const std::string& prefix) {
    std::vector<std::string> keys;
    connection_.each(
        "SELECT key, key_crc FROM blobs WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key",
        [&](const SqliteRow& found) {
          if (is_right_name(found)) keys.push_back(found.text(0));
        },
        prefix);
    return keys;
  }
  bool sweep(const store::Sweep& sweep) {
    const bool more_blobs = store::remove_unused(connection_, sweep);
    const bool more_pages = return_free_pages();
    return more_blobs || more_pages;
  }

  void write_history(const std::vector<store::HistoryRow>& rows) {
    for (const store::HistoryRow& row : rows) {
      bool is_there = row.job == store::kAllJobs;
      connection_.each(
          "SELECT 1 FROM jobs WHERE job = ?", [&](const SqliteRow&) { is_there = true; }, row.job);
      if (!is_there) continue;
      const store::HistoryFigures& of = row.figures;
      connection_.run("INSERT OR REPLACE INTO history VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                      row.job, row.step_s, row.start_s, row.source, of.iterations, of.time_s, of.least_s, of.most_s,
                      of.energy_iterations, of.energy_j, of.planned_iterations, of.planned_s, of.planned_j,
                      of.straggler_iterations, of.first_version, of.last_version, store::checksum_of(row));
    }
  }
  void write_site_history(const std::vector<store::SiteRow>& rows) {
    for (const store::SiteRow& row : rows) {
      const std::string figures = store::format_site_figures(row.figures);
      connection_.run("INSERT OR REPLACE INTO site_history VALUES(?, ?, ?, ?, ?, ?)", row.domain, row.step_s,
                      row.start_s, row.source, figures, store::checksum_of(row, figures));
    }
  }

  // For sql_store.h.
  template <class... Values>
  void run(const char* sql, const Values&... values) {
    connection_.run(sql, values...);
  }
  template <class Visit, class... Values>
  void each(const char* sql, Visit visit, const Values&... values) {
    connection_.each(sql, visit, values...);
  }

 private:
  void hold(const std::string& holder, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) connection_.run("INSERT OR IGNORE INTO holds VALUES(?, ?)", holder, key);
  }
  /// True: it returned pages, and more may be free.
  bool return_free_pages() {
    constexpr int free_pages = 256;
    const int pages = pragma("PRAGMA page_count"), free = pragma("PRAGMA freelist_count");
    // A quarter may stay free for later use. Files of versions before 4 keep their free pages.
    const bool wasteful = free > free_pages && free > pages / 4 && pragma("PRAGMA auto_vacuum") != 0;
    if (wasteful) connection_.each("PRAGMA incremental_vacuum(256)", [](const SqliteRow&) {});
    return wasteful;
  }
  int pragma(const char* sql) {
    std::int64_t value = 0;
    connection_.each(sql, [&](const SqliteRow& found) { value = found.integer(0); });
    return static_cast<int>(value);
  }

  SqliteConnection& connection_;
};

class SqliteStore final : public store::SqlStore<SqliteStore, SqliteConnection> {
 public:
  /// Without a lock: in memory.
  SqliteStore(std::string path, SqliteOptions options, std::optional<DatabaseLock> lock, SqliteConnections connections,
              store::Post post)
      : path_(std::move(path)),
        options_(options),
        lock_(std::move(lock)),
        writer_(std::move(connections.writer)),
        reader_(std::move(connections.reader)),
        damaged_names_(SqliteTables(*reader_).has_damaged_names()),
        may_write_(writer_ != nullptr),
        group_(std::move(post), [this](store::GroupCommit::Writes writes) { return commit(writes); }) {
    if (writer_ && lock_) checkpointer_.emplace(path_, writer_->database());
  }

  [[nodiscard]] std::string read_only() const override { return may_write_ ? "" : kReadOnly; }

  void append(store::Append append, Done<store::Appended> done) override {
    group_.add<store::Appended>([this, append = std::move(append)] { return writing().append(append); },
                                std::move(done));
  }

  Result<std::vector<store::StoredEvent>> read(std::string_view job, std::int64_t after) override {
    const std::string id(job);
    return reading<std::vector<store::StoredEvent>>([&](SqliteConnection& connection) {
      connection.run("BEGIN");  // one snapshot for all reads
      auto read = store::read_log(connection, id, after);
      connection.run("COMMIT");
      return read;
    });
  }

  Result<std::optional<std::string>> blob(std::string_view key) override {
    const std::string name(key);
    return reading<std::optional<std::string>>(
        [&](SqliteConnection& connection) { return SqliteTables(connection).blob(name, damaged_names_); });
  }

  Result<std::vector<std::string>> blob_keys(std::string_view prefix) override {
    const std::string begins(prefix);
    return reading<std::vector<std::string>>(
        [&](SqliteConnection& connection) { return SqliteTables(connection).blob_keys(begins); });
  }

  Result<std::int64_t> size_bytes() override {
    if (!lock_) {
      return reading<std::int64_t>([](SqliteConnection& connection) {
        SQLite::Database& database = connection.database();
        return database.execAndGet("PRAGMA page_count").getInt64() * database.execAndGet("PRAGMA page_size").getInt64();
      });
    }
    std::int64_t bytes = 0;
    for (const char* const file : {"", "-wal"}) {
      std::error_code missing;
      const auto size = std::filesystem::file_size(path_ + file, missing);
      if (!missing) bytes += static_cast<std::int64_t>(size);
    }
    return bytes;
  }

  /// Uses a connection of its own: reads need not wait for it.
  Status backup(const std::string& path) override { return back_up_sqlite(path_, path); }

 private:
  friend class store::SqlStore<SqliteStore, SqliteConnection>;

  static constexpr const char* kReadOnly =
      "the file system has been full or read-only since the server started; make room";

  /// The writer's, on its thread, within commit().
  SqliteTables writing() { return SqliteTables(*writer_); }

  /// If the store was opened without space: reopens the database once there is some. On the writer's thread.
  bool can_write() {
    if (writer_) return true;
    if (!has_room_beside(path_)) return false;
    if (!lock_->is_held()) {
      auto lock = DatabaseLock::take(path_);
      if (!lock || !lock->is_held()) return false;
      lock_.emplace(*std::move(lock));
    }
    const std::lock_guard lock(reader_mutex_);
    reader_.reset();  // closing a file releases the process's locks on it, so it must precede the new ones
    try {
      if (auto opened = connect_sqlite(path_, options_)) {
        checkpointer_.emplace(path_, opened->writer->database());
        writer_ = std::move(opened->writer);
        reader_ = std::move(opened->reader);
        may_write_ = true;
        return true;
      }
    } catch (const SQLite::Exception&) {}  // the disk is full again
    try {
      if (auto opened = connect_sqlite_read_only(path_)) reader_ = std::move(opened->reader);
    } catch (const SQLite::Exception&) {}  // with the next write
    return false;
  }

  std::optional<Error> commit(store::GroupCommit::Writes writes) {
    if (!can_write()) return Error{ErrorCode::unavailable, fmt::format("database: {}", kReadOnly)};
    try {
      writer_->run("BEGIN IMMEDIATE");
      for (const auto& write : writes) write->run();
      writer_->run("COMMIT");
      return std::nullopt;
    } catch (const SQLite::Exception& exception) {
      const Error error = sqlite_error(exception);
      writer_->roll_back();
      return error;
    }
  }

  template <class T, class Work>
  Result<T> reading(Work work) {
    const std::lock_guard lock(reader_mutex_);
    if (!reader_) return Error{ErrorCode::unavailable, fmt::format("database: {}", kReadOnly)};
    try {
      return work(*reader_);
    } catch (const SQLite::Exception& exception) {
      const Error error = sqlite_error(exception);
      reader_->roll_back();
      return error;
    }
  }

  std::string path_;
  SqliteOptions options_;
  std::optional<DatabaseLock> lock_;
  std::shared_ptr<SqliteConnection> writer_;  // for the writer thread only; null: writes are not possible
  std::mutex reader_mutex_;
  std::shared_ptr<SqliteConnection> reader_;
  bool damaged_names_;
  std::atomic<bool> may_write_;
  std::optional<WalCheckpointer> checkpointer_;
  store::GroupCommit group_;  // last: its thread uses the writer
};

/// Of an exception while a file is opened. SQLITE_ERROR, as of an unknown column: the text of a table is damaged.
bool means_damaged(const SQLite::Exception& exception) {
  const int code = exception.getErrorCode();
  return code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR;
}

bool means_not_writable(const SQLite::Exception& exception) {
  constexpr int primary = 0xFF;
  const int code = exception.getErrorCode() & primary;
  return code == SQLITE_FULL || code == SQLITE_READONLY || code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
}

/// On a full or read-only disk.
Result<std::unique_ptr<store::Store>> open_read_only(const std::string& path, DatabaseLock lock, store::Post post,
                                                     const SqliteOptions& options) {
  try {
    auto connections = connect_sqlite_read_only(path);
    if (!connections) return connections.error();
    return std::unique_ptr<store::Store>(
        std::make_unique<SqliteStore>(path, options, std::move(lock), *std::move(connections), std::move(post)));
  } catch (const SQLite::Exception& exception) { return sqlite_error(exception); }
}

/// SQLite would begin a new database and remove the data.
bool lacks_main_file(const std::string& path) {
  const auto size_of = [](const std::string& file) {
    std::error_code absent;
    const std::uintmax_t bytes = std::filesystem::file_size(file, absent);
    return absent ? 0 : bytes;
  };
  return size_of(path) == 0 && size_of(path + "-wal") > 0;
}

}  // namespace

Result<std::unique_ptr<store::Store>> open_sqlite_store(const std::string& path, store::Post post,
                                                        const SqliteOptions& options) {
  auto lock = DatabaseLock::take(path);
  if (!lock) return lock.error();
  if (lacks_main_file(path)) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{0}: missing or empty, but {0}-wal has data that belong to it; restore a backup", path)};
  }
  try {
    auto connections = connect_sqlite(path, options);
    if (!connections) return connections.error();
    return std::unique_ptr<store::Store>(
        std::make_unique<SqliteStore>(path, options, std::move(*lock), *std::move(connections), post));
  } catch (const SQLite::Exception& exception) {
    if (means_damaged(exception)) {
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: no SQLite database, or a damaged one ({})", path, exception.what())};
    }
    if (means_not_writable(exception)) {
      { const DatabaseLock given_up = std::move(*lock); }
      auto again = DatabaseLock::take(path);
      if (!again) return again.error();
      auto store = open_read_only(path, *std::move(again), std::move(post), options);
      // Any other error says less than the first one.
      if (store || store.error().code == ErrorCode::invalid_input) return store;
    }
    return Error{ErrorCode::cannot_write, fmt::format("{}: cannot be opened: {}", path, exception.what())};
  }
}

std::unique_ptr<store::Store> sqlite_store_in_memory() {
  const std::string path = ":memory:";
  const auto both = std::make_shared<SqliteConnection>(path);
  const auto wrong = check_and_migrate(path, both->database());
  PERSEUS_CHECK(!wrong, "a new database");
  return std::make_unique<SqliteStore>(path, SqliteOptions{}, std::nullopt, SqliteConnections{both, both},
                                       store::Post{});
}

}  // namespace perseus::sqlite
