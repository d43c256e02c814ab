#include "store/sqlite_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "store/group_commit.h"

namespace perseus {
namespace {

/// "Pers" in SQLite's header: says whose file it is.
constexpr int kApplicationId = 0x50657273;

/// What turns a file of version i into one of version i + 1. Never change an entry: add one.
constexpr std::array sqlite_migrations = {
    R"(CREATE TABLE job(job TEXT PRIMARY KEY, state TEXT NOT NULL, name TEXT NOT NULL, created_s REAL NOT NULL,
                        updated_s REAL NOT NULL, next_wake_s REAL, last_sequence INTEGER NOT NULL) WITHOUT ROWID;
       CREATE TABLE event(job TEXT NOT NULL, sequence INTEGER NOT NULL, body TEXT NOT NULL,
                          PRIMARY KEY(job, sequence)) WITHOUT ROWID;
       CREATE TABLE blob(key TEXT PRIMARY KEY, bytes BLOB NOT NULL);
       CREATE TABLE claim(work TEXT PRIMARY KEY, owner TEXT NOT NULL, until_s REAL NOT NULL) WITHOUT ROWID;
       CREATE TABLE token(hash TEXT PRIMARY KEY, role TEXT NOT NULL, job TEXT NOT NULL, name TEXT NOT NULL,
                          created_s REAL NOT NULL) WITHOUT ROWID;)",
    R"(ALTER TABLE job ADD COLUMN summary TEXT NOT NULL DEFAULT '';
       DROP TABLE claim;)",
    R"(ALTER TABLE token ADD COLUMN expires_s REAL NOT NULL DEFAULT 0;
       ALTER TABLE token ADD COLUMN team TEXT NOT NULL DEFAULT '';)",
};
constexpr int sqlite_version = static_cast<int>(sqlite_migrations.size());

/// A file descriptor that is closed, and with it the lock on the file given up.
class LockFile {
 public:
  static Result<LockFile> take(const std::string& database) {
    const std::string path = database + ".lock";
    LockFile lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (lock.descriptor_ < 0 && no_room(errno)) {
      lock.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (lock.descriptor_ < 0) return lock;  // nobody has made it, so nobody has the database
    } else if (lock.descriptor_ < 0) {
      return Error{ErrorCode::cannot_write, fmt::format("{}: cannot be created: {}", path, std::strerror(errno))};
    }
    if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
      return Error{ErrorCode::conflict, database +
                                            ": in use by another server; one at a time may open a SQLite file "
                                            "(PostgreSQL serves several)"};
    }
    return lock;
  }
  LockFile(LockFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  explicit LockFile(int descriptor) : descriptor_(descriptor) {}
  static bool no_room(int problem) { return problem == EROFS || problem == ENOSPC || problem == EDQUOT; }
  int descriptor_;
};

/// What the caller can do about it: a value that SQLite does not take is the caller's, everything else may pass.
/// Clients of the server read it, so it does not say where the file is.
Error error_of(const SQLite::Exception& exception) {
  const int code = exception.getErrorCode();
  const bool of_value = code == SQLITE_TOOBIG || code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH;
  return Error{of_value ? ErrorCode::invalid_input : ErrorCode::unavailable,
               fmt::format("database: {}", exception.what())};
}

/// Prepared statements are kept: preparing one costs more than running it.
class Connection {
 public:
  explicit Connection(const std::string& path, int flags = SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      : database_(path, flags, 5000) {}

  SQLite::Database& database() { return database_; }

  /// The statement, bound to the values; a string must outlive its use.
  template <class... Values>
  SQLite::Statement& bound(const char* sql, const Values&... values) {
    auto& statement = statements_.try_emplace(sql, nullptr).first->second;
    if (!statement) statement = std::make_unique<SQLite::Statement>(database_, sql);
    statement->reset();
    int index = 0;
    (bind(*statement, ++index, values), ...);
    return *statement;
  }

  template <class... Values>
  void run(const char* sql, const Values&... values) {
    SQLite::Statement& statement = bound(sql, values...);
    statement.exec();
    statement.reset();
  }

  void forget_statements() { statements_.clear(); }

 private:
  static void bind(SQLite::Statement& statement, int index, const std::string& text) {
    statement.bindNoCopy(index, text);
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

void configure(SQLite::Database& database) {
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
}

/// The lock keeps other servers out, so a claim may end with its server and costs no flush to the disk.
void add_claims(SQLite::Database& database) {
  database.exec("PRAGMA temp_store = MEMORY");
  database.exec(
      "CREATE TEMP TABLE claim(work TEXT PRIMARY KEY, owner TEXT NOT NULL, until_s REAL NOT NULL) WITHOUT ROWID");
}

/// Whose file it is, and that it is whole.
std::optional<Error> check(const std::string& path, SQLite::Database& database) {
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  const int owner = database.execAndGet("PRAGMA application_id").getInt();
  const bool is_new = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  if (!is_new && owner != kApplicationId) {
    return Error{ErrorCode::invalid_input, path + ": a SQLite database of another program"};
  }
  if (version > sqlite_version) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: written by a later Perseus (schema {}, this one knows up to {})", path, version,
                             sqlite_version)};
  }
  if (const std::string found = database.execAndGet("PRAGMA quick_check(1)").getString(); found != "ok") {
    return Error{ErrorCode::invalid_input, fmt::format("{}: damaged ({}); restore a backup", path, found)};
  }
  return std::nullopt;
}

std::optional<Error> check_and_migrate(const std::string& path, SQLite::Database& database) {
  if (auto wrong = check(path, database)) return wrong;
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  configure(database);
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (int i = version; i < sqlite_version; ++i) database.exec(sqlite_migrations[i]);
  database.exec(fmt::format("PRAGMA user_version = {}; PRAGMA application_id = {}", sqlite_version, kApplicationId));
  transaction.commit();
  add_claims(database);
  return std::nullopt;
}

/// Moves the write-ahead log into the database, on a thread and a connection of its own. SQLite by itself does it
/// within a commit, and whoever waits for that commit would wait for megabytes.
class Checkpointer {
 public:
  Checkpointer(const std::string& path, SQLite::Database& writer) : connection_(path) {
    connection_.database().exec("PRAGMA synchronous = FULL");
    sqlite3_wal_hook(writer.getHandle(), &Checkpointer::committed, this);
    thread_ = std::thread([this] { work(); });
  }
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  ~Checkpointer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

 private:
  static constexpr int kEnoughPages = 1000;    // SQLite's own default
  static constexpr int kTooManyPages = 16000;  // 64 MB: commits never stop, so they must wait for once

  static int committed(void* self, sqlite3* writer, const char* /*database*/, int pages) {
    if (pages >= kTooManyPages) {
      checkpoint(writer);
    } else if (pages >= kEnoughPages) {
      static_cast<Checkpointer*>(self)->want();
    }
    return SQLITE_OK;
  }
  /// What it does not get done, for a reader is in the way or the disk is full, the next one does.
  static void checkpoint(sqlite3* database) {
    sqlite3_wal_checkpoint_v2(database, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  }
  void want() {
    {
      const std::lock_guard lock(mutex_);
      wanted_ = true;
    }
    wake_.notify_one();
  }
  void work() {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return wanted_ || stopping_; });
        if (stopping_) return;
        wanted_ = false;
      }
      checkpoint(connection_.database().getHandle());
    }
  }

  Connection connection_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool wanted_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

class SqliteStore final : public Store {
 public:
  SqliteStore(std::string path, LockFile lock, std::unique_ptr<Connection> writer, std::unique_ptr<Connection> reader,
              Post post)
      : path_(std::move(path)),
        lock_(std::move(lock)),
        writer_(std::move(writer)),
        reader_(std::move(reader)),
        group_(std::move(post), [this](std::span<const GroupCommit::Write> writes) { return commit(writes); }) {
    if (writer_) checkpointer_.emplace(path_, writer_->database());
  }

  [[nodiscard]] std::string read_only() const override { return writer_ ? "" : kReadOnly; }

  void append(Append append, Done<Appended> done) override {
    group_.add<Appended>([this, append = std::move(append)] { return append_now(append); }, std::move(done));
  }

  Result<std::vector<StoredEvent>> read(std::string_view job, std::int64_t after) override {
    return reading<std::vector<StoredEvent>>([&](Connection& connection) {
      const std::string id(job);
      SQLite::Statement& found = connection.bound(
          "SELECT sequence, body FROM event WHERE job = ? AND sequence > ? ORDER BY sequence", id, after);
      std::vector<StoredEvent> events;
      while (found.executeStep()) events.push_back({found.getColumn(0).getInt64(), found.getColumn(1).getString()});
      found.reset();
      return events;
    });
  }

  Result<std::vector<JobIndexRow>> jobs() override {
    return reading<std::vector<JobIndexRow>>([](Connection& connection) {
      SQLite::Statement& found = connection.bound(
          "SELECT job, state, name, created_s, updated_s, next_wake_s, last_sequence, summary FROM job ORDER BY job");
      std::vector<JobIndexRow> rows;
      while (found.executeStep()) {
        JobIndexRow& row = rows.emplace_back();
        row.job = found.getColumn(0).getString();
        row.state = found.getColumn(1).getString();
        row.name = found.getColumn(2).getString();
        row.created_s = found.getColumn(3).getDouble();
        row.updated_s = found.getColumn(4).getDouble();
        if (!found.isColumnNull(5)) row.next_wake_s = found.getColumn(5).getDouble();
        row.last_sequence = found.getColumn(6).getInt64();
        row.summary = found.getColumn(7).getString();
      }
      found.reset();
      return rows;
    });
  }

  void remove_job(std::string job, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, job = std::move(job)] {
      writer_->run("DELETE FROM event WHERE job = ?", job);
      writer_->run("DELETE FROM job WHERE job = ?", job);
    });
  }

  void put_blob(Blob blob, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, blob = std::move(blob)] { put_blob_now(blob); });
  }

  Result<std::optional<std::string>> blob(std::string_view key) override {
    return reading<std::optional<std::string>>([&](Connection& connection) {
      const std::string name(key);
      SQLite::Statement& found = connection.bound("SELECT bytes FROM blob WHERE key = ?", name);
      std::optional<std::string> bytes;
      if (found.executeStep()) bytes = found.getColumn(0).getString();
      found.reset();
      return bytes;
    });
  }

  Result<std::vector<std::string>> blob_keys(std::string_view prefix) override {
    return reading<std::vector<std::string>>([&](Connection& connection) {
      const std::string begins(prefix);
      SQLite::Statement& found =
          connection.bound("SELECT key FROM blob WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key", begins);
      std::vector<std::string> keys;
      while (found.executeStep()) keys.push_back(found.getColumn(0).getString());
      found.reset();
      return keys;
    });
  }

  void remove_blob(std::string key, Done<Ok> done) override {
    group_.add_work(std::move(done),
                    [this, key = std::move(key)] { writer_->run("DELETE FROM blob WHERE key = ?", key); });
  }

  void claim(std::string work, std::string owner, double now_s, double lease_s, Done<bool> done) override {
    group_.add<bool>(
        [this, work = std::move(work), owner = std::move(owner), now_s, lease_s] {
          SQLite::Statement& taken = writer_->bound(
              "INSERT INTO claim VALUES(?1, ?2, ?3) ON CONFLICT(work) DO UPDATE SET owner = ?2, until_s = ?3 "
              "WHERE owner = ?2 OR until_s <= ?4",
              work, owner, now_s + lease_s, now_s);
          const bool is_ours = taken.exec() > 0;
          taken.reset();
          return is_ours;
        },
        std::move(done));
  }

  void release(std::string work, std::string owner, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, work = std::move(work), owner = std::move(owner)] {
      writer_->run("DELETE FROM claim WHERE work = ? AND owner = ?", work, owner);
    });
  }

  void put_token(TokenRow token, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, token = std::move(token)] {
      writer_->run("INSERT OR REPLACE INTO token VALUES(?, ?, ?, ?, ?, ?, ?)", token.hash, token.role, token.job,
                   token.name, token.created_s, token.expires_s, token.team);
    });
  }

  void revoke_token(std::string hash, Done<Ok> done) override {
    group_.add_work(std::move(done),
                    [this, hash = std::move(hash)] { writer_->run("DELETE FROM token WHERE hash = ?", hash); });
  }

  Result<std::vector<TokenRow>> tokens() override {
    return reading<std::vector<TokenRow>>([](Connection& connection) {
      SQLite::Statement& found =
          connection.bound("SELECT hash, role, job, name, created_s, expires_s, team FROM token ORDER BY hash");
      std::vector<TokenRow> rows;
      while (found.executeStep()) {
        rows.push_back({found.getColumn(0).getString(), found.getColumn(1).getString(), found.getColumn(2).getString(),
                        found.getColumn(3).getString(), found.getColumn(4).getDouble(), found.getColumn(5).getDouble(),
                        found.getColumn(6).getString()});
      }
      found.reset();
      return rows;
    });
  }

  void on_foreign(Foreign) override {}  // the lock keeps others out

  /// On a connection of its own: reads need not wait for it.
  Status backup(const std::string& path) override { return back_up_sqlite(path_, path); }

 private:
  static constexpr const char* kReadOnly =
      "the file system was full or read-only when the server started; make room and restart it";

  std::optional<Error> commit(std::span<const GroupCommit::Write> writes) {
    if (!writer_) return Error{ErrorCode::unavailable, fmt::format("database: {}", kReadOnly)};
    try {
      writer_->run("BEGIN IMMEDIATE");
      for (const GroupCommit::Write& write : writes) write.run();
      writer_->run("COMMIT");
      return std::nullopt;
    } catch (const SQLite::Exception& exception) {
      const Error error = error_of(exception);
      // A full disk may have rolled back already. Statements in flight would keep the transaction open.
      writer_->forget_statements();
      if (sqlite3_get_autocommit(writer_->database().getHandle()) == 0) { writer_->database().tryExec("ROLLBACK"); }
      return error;
    }
  }

  template <class T, class Work>
  Result<T> reading(Work work) {
    const std::lock_guard lock(reader_mutex_);
    try {
      return work(*reader_);
    } catch (const SQLite::Exception& exception) {
      reader_->forget_statements();
      return error_of(exception);
    }
  }

  void put_blob_now(const Blob& blob) {
    SQLite::Statement& put = writer_->bound("INSERT OR REPLACE INTO blob VALUES(?, ?)", blob.key);
    put.bindNoCopy(2, blob.bytes.data(), static_cast<int>(blob.bytes.size()));
    put.exec();
    put.reset();
  }

  Appended append_now(const Append& append) {
    SQLite::Statement& found = writer_->bound("SELECT last_sequence FROM job WHERE job = ?", append.job);
    const std::int64_t last = found.executeStep() ? found.getColumn(0).getInt64() : 0;
    found.reset();
    if (last != append.expected_sequence) return Appended::conflict;
    std::int64_t sequence = last;
    for (const std::string& body : append.bodies) {
      writer_->run("INSERT INTO event VALUES(?, ?, ?)", append.job, ++sequence, body);
    }
    const JobIndexRow& row = append.index;
    writer_->run("INSERT OR REPLACE INTO job VALUES(?, ?, ?, ?, ?, ?, ?, ?)", append.job, row.state, row.name,
                 row.created_s, row.updated_s, row.next_wake_s, sequence, row.summary);
    for (const Blob& blob : append.blobs) put_blob_now(blob);
    return Appended::committed;
  }

  std::string path_;
  LockFile lock_;
  std::unique_ptr<Connection> writer_;  // the writer thread's; null: nothing can be written
  std::mutex reader_mutex_;
  std::unique_ptr<Connection> reader_;
  std::optional<Checkpointer> checkpointer_;
  GroupCommit group_;  // last: its thread uses the writer
};

/// A power cut after this leaves the file, or folder, as it is now.
bool flush_to_disk(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = file >= 0 && ::fsync(file) == 0;
  if (file >= 0) ::close(file);
  return flushed;
}

}  // namespace

namespace {

/// Without a write, a lock or a file of shared memory: none of them can be made.
Result<std::unique_ptr<Store>> open_read_only(const std::string& path, LockFile lock, Post post) {
  std::error_code missing;
  const bool has_log = std::filesystem::file_size(path + "-wal", missing) > 0 && !missing;
  std::string uri = "file:";
  for (const char c : path) uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02X}", c) : std::string(1, c);
  // A log is indexed in the memory of the only connection, without locks; without one, the file is all there is.
  uri += has_log ? "?mode=ro&vfs=unix-none" : "?immutable=1";
  auto reader = std::make_unique<Connection>(uri, SQLite::OPEN_READONLY | SQLite::OPEN_URI);
  if (has_log) reader->database().exec("PRAGMA locking_mode = EXCLUSIVE");
  if (auto wrong = check(path, reader->database())) return *std::move(wrong);
  const int version = reader->database().execAndGet("PRAGMA user_version").getInt();
  if (version != sqlite_version) {
    return Error{ErrorCode::cannot_write, fmt::format("{}: schema {}; it is brought up to {} once it can be written",
                                                      path, version, sqlite_version)};
  }
  return std::unique_ptr<Store>(
      std::make_unique<SqliteStore>(path, std::move(lock), nullptr, std::move(reader), std::move(post)));
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, Post post, const SqliteOptions& options) {
  auto lock = LockFile::take(path);
  if (!lock) return lock.error();
  try {
    auto writer = std::make_unique<Connection>(path);
    if (auto error = check_and_migrate(path, writer->database())) return *std::move(error);
    if (options.max_pages > 0) writer->database().exec(fmt::format("PRAGMA max_page_count = {}", options.max_pages));
    auto reader = std::make_unique<Connection>(path);
    return std::unique_ptr<Store>(
        std::make_unique<SqliteStore>(path, std::move(*lock), std::move(writer), std::move(reader), post));
  } catch (const SQLite::Exception& exception) {
    const bool is_damaged = exception.getErrorCode() == SQLITE_NOTADB || exception.getErrorCode() == SQLITE_CORRUPT;
    if (is_damaged) {
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: no SQLite database, or a damaged one ({})", path, exception.what())};
    }
    constexpr int primary = 0xFF;
    const int code = exception.getErrorCode() & primary;
    const bool no_room =
        code == SQLITE_FULL || code == SQLITE_READONLY || code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
    if (no_room) {
      try {
        { const LockFile given_up = std::move(*lock); }
        auto again = LockFile::take(path);
        if (!again) return again.error();
        auto store = open_read_only(path, *std::move(again), std::move(post));
        if (store) return store;
        if (store.error().code == ErrorCode::invalid_input) return store.error();
      } catch (const SQLite::Exception&) {}  // the first error says more
    }
    return Error{ErrorCode::cannot_write, fmt::format("{}: cannot be opened: {}", path, exception.what())};
  }
}

Status back_up_sqlite(const std::string& path, const std::string& to) {
  const auto cannot = [&](std::string_view why) {
    return Error{ErrorCode::cannot_write, fmt::format("{}: cannot be written: {}", to, why)};
  };
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return Error{ErrorCode::not_found, path + ": does not exist"};
  if (std::filesystem::exists(to, failure)) return cannot("it exists already, and a backup goes into a new file");
  const std::string partial = to + ".partial";
  std::filesystem::remove(partial, failure);
  try {
    SQLite::Database database(path, SQLite::OPEN_READONLY, 5000);
    if (database.execAndGet("PRAGMA application_id").getInt() != kApplicationId) {
      return Error{ErrorCode::invalid_input, path + ": not a database of Perseus"};
    }
    SQLite::Statement copy(database, "VACUUM INTO ?");
    copy.bind(1, partial);
    copy.exec();
  } catch (const SQLite::Exception& exception) {
    std::filesystem::remove(partial, failure);
    return cannot(exception.what());
  }
  const std::string folder = std::filesystem::absolute(to, failure).parent_path().string();
  if (!flush_to_disk(partial) || std::rename(partial.c_str(), to.c_str()) != 0 || !flush_to_disk(folder)) {
    const Error error = cannot(std::strerror(errno));
    std::filesystem::remove(partial, failure);
    return error;
  }
  return Ok{};
}

}  // namespace perseus
