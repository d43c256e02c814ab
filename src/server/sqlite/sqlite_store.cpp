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
#include "server/sqlite/sqlite_tables.h"
#include "server/store/group_commit.h"
#include "server/store/shared_tables.h"

namespace perseus::sqlite {
namespace {

class SqliteStore final : public store::Store {
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
    group_.add<store::Appended>([this, append = std::move(append)] { return tables().append(append); },
                                std::move(done));
  }

  Result<std::vector<store::StoredEvent>> read(std::string_view job, std::int64_t after) override {
    const std::string id(job);
    return reading<std::vector<store::StoredEvent>>([&](SqliteConnection& connection) {
      connection.run("BEGIN");  // one snapshot for all reads
      auto read = SqliteTables(connection).read(id, after);
      connection.run("COMMIT");
      return read;
    });
  }

  Result<std::vector<store::JobIndexRow>> jobs() override {
    return reading<std::vector<store::JobIndexRow>>(store::read_jobs<SqliteConnection>);
  }

  void remove_job(std::string job, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, job = std::move(job)] { store::remove_job(*writer_, job); });
  }

  void pack_job(std::string job, Done<bool> done) override {
    group_.add<bool>([this, job = std::move(job)] { return tables().pack_job(job); }, std::move(done));
  }

  void write_history(std::vector<store::HistoryRow> rows, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, rows = std::move(rows)] { tables().write_history(rows); });
  }

  Result<std::vector<store::HistoryRow>> history(std::string_view job, std::int64_t from_s,
                                                 std::int64_t to_s) override {
    const std::string id(job);
    return reading<std::vector<store::HistoryRow>>(
        [&](SqliteConnection& connection) { return store::read_history(connection, id, from_s, to_s); });
  }

  void age_history(store::AgeHistory age, Done<bool> done) override {
    const auto work = [this, age] {
      SqliteTables tables(*writer_);
      return store::age_history(tables, age);
    };
    group_.add<bool>(work, std::move(done));
  }

  Result<std::vector<store::HistoryBytes>> history_bytes() override {
    return reading<std::vector<store::HistoryBytes>>(store::read_history_bytes<SqliteConnection>);
  }

  void write_site_history(std::vector<store::SiteRow> rows, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, rows = std::move(rows)] { tables().write_site_history(rows); });
  }

  Result<std::vector<store::SiteRow>> site_history(std::int64_t from_s, std::int64_t to_s) override {
    return reading<std::vector<store::SiteRow>>(
        [=](SqliteConnection& connection) { return store::read_site_history(connection, from_s, to_s); });
  }

  void put_blob(store::Blob blob, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, blob = std::move(blob)] { tables().put_blob(blob); });
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

  void remove_blob(std::string key, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, key = std::move(key)] { store::remove_blob(*writer_, key); });
  }

  void sweep(store::Sweep sweep, Done<bool> done) override {
    group_.add<bool>([this, sweep = std::move(sweep)] { return tables().sweep(sweep); }, std::move(done));
  }

  void put_token(store::TokenRow token, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, token = std::move(token)] { store::put_token(*writer_, token); });
  }

  void revoke_token(std::string hash, Done<Ok> done) override {
    group_.add_work(std::move(done),
                    [this, hash = std::move(hash)] { writer_->run("DELETE FROM tokens WHERE hash = $1", hash); });
  }

  Result<std::vector<store::TokenRow>> tokens() override {
    return reading<std::vector<store::TokenRow>>(store::read_tokens<SqliteConnection>);
  }

  [[nodiscard]] store::CommitCounts commits() const override { return group_.counts(); }

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

  Result<std::vector<store::HeldBlob>> held_blobs() override {
    return reading<std::vector<store::HeldBlob>>(store::read_held_blobs<SqliteConnection>);
  }

  /// Uses a connection of its own: reads need not wait for it.
  Status backup(const std::string& path) override { return back_up_sqlite(path_, path); }

 private:
  static constexpr const char* kReadOnly =
      "the file system has been full or read-only since the server started; make room";

  /// The writer's, on its thread, within commit().
  SqliteTables tables() { return SqliteTables(*writer_); }

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
