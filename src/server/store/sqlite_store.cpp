#include "server/store/sqlite_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
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

#include "server/store/checksum.h"
#include "server/store/group_commit.h"
#include "server/store/packed_events.h"

namespace perseus::store {
namespace {

/// "Pers" in SQLite's header: identifies the application of the file.
constexpr int kApplicationId = 0x50657273;

/// Migrations from file version i to i + 1. Never change an entry: add one.
constexpr std::array kSqliteMigrations = {
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
    // Checksums, packed logs, and the record of used blobs. A name has a checksum of its own: see DamagedNames.
    R"(ALTER TABLE job ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE job ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE job ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE event ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE token ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE blob RENAME TO blob_before;
       CREATE TABLE blob(key TEXT PRIMARY KEY, key_crc INTEGER NOT NULL, crc INTEGER NOT NULL,
                         bytes BLOB NOT NULL) WITHOUT ROWID;
       CREATE TABLE pack(job TEXT NOT NULL, last INTEGER NOT NULL, first INTEGER NOT NULL, crc INTEGER NOT NULL,
                         bytes BLOB NOT NULL, PRIMARY KEY(job, last)) WITHOUT ROWID;
       CREATE TABLE holds(holder TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY(holder, key)) WITHOUT ROWID;
       CREATE INDEX holds_key ON holds(key);
       CREATE TABLE unused(key TEXT PRIMARY KEY, since_s REAL NOT NULL) WITHOUT ROWID;
       UPDATE event SET crc = checksum(job, sequence, body);
       UPDATE job SET bytes = (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM event WHERE event.job = job.job);
       UPDATE job SET crc = checksum(job, state, name, created_s, updated_s, next_wake_s, last_sequence, summary, bytes,
                                     packed);
       UPDATE token SET crc = checksum(hash, role, job, name, created_s, expires_s, team);
       INSERT INTO blob SELECT key, checksum(key), checksum(key, CAST(bytes AS TEXT)), bytes FROM blob_before;
       DROP TABLE blob_before;
       -- What holds what, from bodies as versions 1 to 3 wrote them: the key is 32 characters after "input":".
       INSERT OR IGNORE INTO holds
         SELECT 'job/' || job, kind || substr(body, instr(body, '"input":"') + 9, 32)
         FROM event, (SELECT 'input/' AS kind UNION SELECT 'frontier/')
         WHERE body LIKE '{"kind":"profile_known"%' AND instr(body, '"input":"') > 0;
       INSERT OR IGNORE INTO holds
         SELECT key, kind || substr(text, max(1, instr(text, '"input":"') + 9 * (instr(text, '"input":"') > 0)), 32)
         FROM (SELECT key, CAST(bytes AS TEXT) AS text FROM blob WHERE key LIKE 'known/%'),
              (SELECT 'input/' AS kind UNION SELECT 'frontier/');
       INSERT OR IGNORE INTO holds
         SELECT 'job/' || job.job, key FROM blob, job
         WHERE key LIKE 'known/%' AND instr(CAST(blob.bytes AS TEXT), '"job":"' || job.job || '"') > 0;)",
};
constexpr int kSqliteVersion = static_cast<int>(kSqliteMigrations.size());

/// A file descriptor with a lock; closing it releases the lock.
class LockFile {
 public:
  static Result<LockFile> take(const std::string& database) {
    const std::string path = database + ".lock";
    LockFile lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (lock.descriptor_ < 0 && no_room(errno)) {
      lock.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (lock.descriptor_ < 0) return lock;  // the lock file does not exist, so no server uses the database
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
  /// False: there is no space for the file, and another server would find it missing too.
  [[nodiscard]] bool is_held() const { return descriptor_ >= 0; }

 private:
  explicit LockFile(int descriptor) : descriptor_(descriptor) {}
  static bool no_room(int problem) { return problem == EROFS || problem == ENOSPC || problem == EDQUOT; }
  int descriptor_;
};

/// The error by what the caller can do: a value that SQLite rejects is the caller's fault, everything else may be
/// transient. Clients of the server read the message, so it does not contain the file's path.
Error error_of(const SQLite::Exception& exception) {
  const int code = exception.getErrorCode();
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return Error{ErrorCode::internal, fmt::format("database: damaged ({}); restore a backup", exception.what())};
  }
  const bool of_value = code == SQLITE_TOOBIG || code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH;
  return Error{of_value ? ErrorCode::invalid_input : ErrorCode::unavailable,
               fmt::format("database: {}", exception.what())};
}

/// checksum(value, ...) for migrations: equals the Checksum of the same values.
void checksum_in_sql(sqlite3_context* context, int count, sqlite3_value** values) {
  Checksum checksum;
  for (int i = 0; i < count; ++i) {
    sqlite3_value* const value = values[i];
    switch (sqlite3_value_type(value)) {
      case SQLITE_INTEGER:
        checksum.add(static_cast<std::int64_t>(sqlite3_value_int64(value)));
        break;
      case SQLITE_FLOAT:
        checksum.add(sqlite3_value_double(value));
        break;
      case SQLITE_NULL:
        checksum.add_null();
        break;
      default: {
        const void* const bytes = sqlite3_value_blob(value);  // must precede the request for its size
        const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
        checksum.add(std::string_view(static_cast<const char*>(bytes), size));
      }
    }
  }
  sqlite3_result_int64(context, checksum.value());
}

/// Keeps prepared statements: preparing one costs more than running it.
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
  sqlite3_create_function_v2(database.getHandle(), "checksum", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr,
                             checksum_in_sql, nullptr, nullptr, nullptr);
}

/// The lock excludes other servers, so a claim may end with its server and needs no disk flush.
void add_claims(SQLite::Database& database) {
  database.exec("PRAGMA temp_store = MEMORY");
  database.exec(
      "CREATE TEMP TABLE claim(work TEXT PRIMARY KEY, owner TEXT NOT NULL, until_s REAL NOT NULL) WITHOUT ROWID");
}

/// Checks the application of the file and its integrity.
std::optional<Error> check(const std::string& path, SQLite::Database& database) {
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  const int owner = database.execAndGet("PRAGMA application_id").getInt();
  const bool is_new = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  if (!is_new && owner != kApplicationId) {
    return Error{ErrorCode::invalid_input, path + ": a SQLite database of another program"};
  }
  if (version > kSqliteVersion) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: written by a later Perseus (schema {}, this one knows up to {})", path, version,
                             kSqliteVersion)};
  }
  if (const std::string found = database.execAndGet("PRAGMA quick_check(1)").getString(); found != "ok") {
    return Error{ErrorCode::invalid_input, fmt::format("{}: damaged ({}); restore a backup", path, found)};
  }
  return std::nullopt;
}

std::optional<Error> check_and_migrate(const std::string& path, SQLite::Database& database) {
  if (auto wrong = check(path, database)) return wrong;
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  const bool is_new = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  if (is_new) database.exec("PRAGMA auto_vacuum = INCREMENTAL");  // only possible before the first table
  configure(database);
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (int i = version; i < kSqliteVersion; ++i) database.exec(kSqliteMigrations[i]);
  database.exec(fmt::format("PRAGMA user_version = {}; PRAGMA application_id = {}", kSqliteVersion, kApplicationId));
  transaction.commit();
  add_claims(database);
  return std::nullopt;
}

/// Moves the write-ahead log into the database, on a thread and a connection of its own. SQLite itself does it within
/// a commit, which would then have to write megabytes.
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
  static constexpr int kTooManyPages = 16000;  // 64 MB: commits never pause, so here they must wait

  static int committed(void* self, sqlite3* writer, const char* /*database*/, int pages) {
    if (pages >= kTooManyPages) {
      checkpoint(writer);
    } else if (pages >= kEnoughPages) {
      static_cast<Checkpointer*>(self)->want();
    }
    return SQLITE_OK;
  }
  /// Work left undone because of a reader or a full disk is left to the next checkpoint.
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

constexpr const char* kSqliteIndexColumns =
    "job, state, name, created_s, updated_s, next_wake_s, last_sequence, summary, bytes, packed, crc";

/// For a statement that selects kSqliteIndexColumns first.
JobIndexRow index_row(SQLite::Statement& found) {
  JobIndexRow row;
  row.job = found.getColumn(0).getString();
  row.state = found.getColumn(1).getString();
  row.name = found.getColumn(2).getString();
  row.created_s = found.getColumn(3).getDouble();
  row.updated_s = found.getColumn(4).getDouble();
  if (!found.isColumnNull(5)) row.next_wake_s = found.getColumn(5).getDouble();
  row.last_sequence = found.getColumn(6).getInt64();
  row.summary = found.getColumn(7).getString();
  row.bytes = found.getColumn(8).getInt64();
  row.packed = found.getColumn(9).getInt64();
  row.damaged = found.getColumn(10).getInt64() != checksum_of(row);
  return row;
}

/// A blob with a damaged name is not found under its own name. So if there is one, no blob is reported as missing.
bool has_damaged_names(SQLite::Database& database) {
  SQLite::Statement names(database, "SELECT key, key_crc FROM blob");
  while (names.executeStep()) {
    if (Checksum().add(std::string_view(names.getColumn(0).getString())).value() != names.getColumn(1).getInt64()) {
      return true;
    }
  }
  return false;
}

struct Connections {
  std::unique_ptr<Connection> writer;  ///< null: writes are not possible
  std::unique_ptr<Connection> reader;
};

/// Throws SQLite's exceptions.
Result<Connections> connect(const std::string& path, const SqliteOptions& options) {
  auto writer = std::make_unique<Connection>(path);
  if (auto error = check_and_migrate(path, writer->database())) return *std::move(error);
  if (options.max_pages > 0) writer->database().exec(fmt::format("PRAGMA max_page_count = {}", options.max_pages));
  return Connections{std::move(writer), std::make_unique<Connection>(path)};
}

/// Without a write, a lock or a shared memory file, none of which is possible. Throws SQLite's exceptions.
Result<Connections> connect_read_only(const std::string& path) {
  std::error_code missing;
  const bool has_log = std::filesystem::file_size(path + "-wal", missing) > 0 && !missing;
  std::string uri = "file:";
  for (const char c : path) uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02X}", c) : std::string(1, c);
  // The only connection indexes the log in memory, without locks; without a log, the file is complete.
  uri += has_log ? "?mode=ro&vfs=unix-none" : "?immutable=1";
  auto reader = std::make_unique<Connection>(uri, SQLite::OPEN_READONLY | SQLite::OPEN_URI);
  if (has_log) reader->database().exec("PRAGMA locking_mode = EXCLUSIVE");
  if (auto wrong = check(path, reader->database())) return *std::move(wrong);
  const int version = reader->database().execAndGet("PRAGMA user_version").getInt();
  if (version != kSqliteVersion) {
    return Error{ErrorCode::cannot_write, fmt::format("{}: schema {}; it is brought up to {} once it can be written",
                                                      path, version, kSqliteVersion)};
  }
  return Connections{nullptr, std::move(reader)};
}

/// Checks whether a page can be written beside the database, which costs less than opening it.
bool has_room(const std::string& path) {
  const std::string name = path + ".room";
  const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const std::string page(1U << 16U, 'x');
  const bool written =
      ::write(file, page.data(), page.size()) == static_cast<ssize_t>(page.size()) && ::fsync(file) == 0;
  ::close(file);
  ::unlink(name.c_str());
  return written;
}

class SqliteStore final : public Store {
 public:
  SqliteStore(std::string path, SqliteOptions options, LockFile lock, Connections connections, Post post)
      : path_(std::move(path)),
        options_(options),
        lock_(std::move(lock)),
        writer_(std::move(connections.writer)),
        reader_(std::move(connections.reader)),
        damaged_names_(has_damaged_names(reader_->database())),
        may_write_(writer_ != nullptr),
        group_(std::move(post), [this](std::span<const GroupCommit::Write> writes) { return commit(writes); }) {
    if (writer_) checkpointer_.emplace(path_, writer_->database());
  }

  [[nodiscard]] std::string read_only() const override { return may_write_ ? "" : kReadOnly; }

  void append(Append append, Done<Appended> done) override {
    group_.add<Appended>([this, append = std::move(append)] { return append_now(append); }, std::move(done));
  }

  Result<std::vector<StoredEvent>> read(std::string_view job, std::int64_t after) override {
    const std::string id(job);
    auto events = reading<Result<std::vector<StoredEvent>>>([&](Connection& connection) {
      connection.run("BEGIN");  // one snapshot for all reads
      auto read = read_now(connection, id, after);
      connection.run("COMMIT");
      return read;
    });
    if (!events) return events.error();
    return *std::move(events);
  }

  Result<std::vector<JobIndexRow>> jobs() override {
    return reading<std::vector<JobIndexRow>>([](Connection& connection) {
      static const std::string sql = fmt::format("SELECT {} FROM job ORDER BY job", kSqliteIndexColumns);
      SQLite::Statement& found = connection.bound(sql.c_str());
      std::vector<JobIndexRow> rows;
      while (found.executeStep()) rows.push_back(index_row(found));
      found.reset();
      return rows;
    });
  }

  void remove_job(std::string job, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, job = std::move(job)] {
      writer_->run("DELETE FROM event WHERE job = ?", job);
      writer_->run("DELETE FROM pack WHERE job = ?", job);
      writer_->run("DELETE FROM job WHERE job = ?", job);
      writer_->run("DELETE FROM holds WHERE holder = ?", "job/" + job);
    });
  }

  void pack_job(std::string job, Done<bool> done) override {
    group_.add<bool>([this, job = std::move(job)] { return pack_now(job); }, std::move(done));
  }

  void put_blob(Blob blob, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, blob = std::move(blob)] { put_blob_now(blob); });
  }

  Result<std::optional<std::string>> blob(std::string_view key) override {
    using Found = std::optional<std::string>;
    const std::string name(key);
    auto bytes = reading<Result<Found>>([&](Connection& connection) -> Result<Found> {
      SQLite::Statement& found = connection.bound("SELECT bytes, crc FROM blob WHERE key = ?", name);
      Found read;
      std::int64_t crc = 0;
      if (found.executeStep()) {
        read = found.getColumn(0).getString();
        crc = found.getColumn(1).getInt64();
      }
      found.reset();
      if (!read && !damaged_names_) return read;
      if (!read) return damaged(fmt::format("'{}' is not there, and the name of something stored", name));
      if (crc != checksum_of_blob(name, *read)) return damaged(fmt::format("the stored '{}'", name));
      return read;
    });
    if (!bytes) return bytes.error();
    return *std::move(bytes);
  }

  Result<std::vector<std::string>> blob_keys(std::string_view prefix) override {
    return reading<std::vector<std::string>>([&](Connection& connection) {
      const std::string begins(prefix);
      SQLite::Statement& found =
          connection.bound("SELECT key, key_crc FROM blob WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key", begins);
      std::vector<std::string> keys;
      while (found.executeStep()) {
        std::string key = found.getColumn(0).getString();
        const bool right = Checksum().add(std::string_view(key)).value() == found.getColumn(1).getInt64();
        if (right) keys.push_back(std::move(key));
      }
      found.reset();
      return keys;
    });
  }

  void remove_blob(std::string key, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, key = std::move(key)] { remove_blob_now(key); });
  }

  void sweep(Sweep sweep, Done<bool> done) override {
    group_.add<bool>([this, sweep = std::move(sweep)] { return sweep_now(sweep); }, std::move(done));
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
      writer_->run("INSERT OR REPLACE INTO token VALUES(?, ?, ?, ?, ?, ?, ?, ?)", token.hash, token.role, token.job,
                   token.name, token.created_s, token.expires_s, token.team, checksum_of(token));
    });
  }

  void revoke_token(std::string hash, Done<Ok> done) override {
    group_.add_work(std::move(done),
                    [this, hash = std::move(hash)] { writer_->run("DELETE FROM token WHERE hash = ?", hash); });
  }

  Result<std::vector<TokenRow>> tokens() override {
    using Rows = std::vector<TokenRow>;
    auto rows = reading<Result<Rows>>([](Connection& connection) -> Result<Rows> {
      SQLite::Statement& found =
          connection.bound("SELECT hash, role, job, name, created_s, expires_s, team, crc FROM token ORDER BY hash");
      Rows read;
      bool right = true;
      while (found.executeStep()) {
        read.push_back({found.getColumn(0).getString(), found.getColumn(1).getString(), found.getColumn(2).getString(),
                        found.getColumn(3).getString(), found.getColumn(4).getDouble(), found.getColumn(5).getDouble(),
                        found.getColumn(6).getString()});
        right = right && found.getColumn(7).getInt64() == checksum_of(read.back());
      }
      found.reset();
      if (!right) return damaged("a token");
      return read;
    });
    if (!rows) return rows.error();
    return *std::move(rows);
  }

  [[nodiscard]] CommitCounts commits() const override { return group_.counts(); }

  Result<std::int64_t> size_bytes() override {
    std::int64_t bytes = 0;
    for (const char* const file : {"", "-wal"}) {
      std::error_code missing;
      const auto size = std::filesystem::file_size(path_ + file, missing);
      if (!missing) bytes += static_cast<std::int64_t>(size);
    }
    return bytes;
  }

  Result<std::vector<HeldBlob>> held_blobs() override {
    return reading<std::vector<HeldBlob>>([](Connection& connection) {
      SQLite::Statement& found = connection.bound(
          "SELECT substr(holder, 5), holds.key, length(bytes) FROM holds JOIN blob ON blob.key = holds.key "
          "WHERE holder > 'job/' AND holder < 'job0' ORDER BY holder, holds.key");
      std::vector<HeldBlob> held;
      while (found.executeStep()) {
        held.push_back({found.getColumn(0).getString(), found.getColumn(1).getString(), found.getColumn(2).getInt64()});
      }
      found.reset();
      return held;
    });
  }

  void on_foreign(Foreign) override {}  // the lock excludes others

  /// Uses a connection of its own: reads need not wait for it.
  Status backup(const std::string& path) override { return back_up_sqlite(path_, path); }

 private:
  static constexpr const char* kReadOnly =
      "the file system has been full or read-only since the server started; make room";

  /// If the store was opened without space: reopens the database once there is some. On the writer's thread.
  bool can_write() {
    if (writer_) return true;
    if (!has_room(path_)) return false;
    if (!lock_->is_held()) {
      auto lock = LockFile::take(path_);
      if (!lock || !lock->is_held()) return false;
      lock_.emplace(*std::move(lock));
    }
    const std::lock_guard lock(reader_mutex_);
    reader_.reset();  // closing a file releases the process's locks on it, so it must precede the new ones
    try {
      if (auto opened = connect(path_, options_)) {
        checkpointer_.emplace(path_, opened->writer->database());
        writer_ = std::move(opened->writer);
        reader_ = std::move(opened->reader);
        may_write_ = true;
        return true;
      }
    } catch (const SQLite::Exception&) {}  // the disk is full again
    try {
      if (auto opened = connect_read_only(path_)) reader_ = std::move(opened->reader);
    } catch (const SQLite::Exception&) {}  // with the next write
    return false;
  }

  std::optional<Error> commit(std::span<const GroupCommit::Write> writes) {
    if (!can_write()) return Error{ErrorCode::unavailable, fmt::format("database: {}", kReadOnly)};
    try {
      writer_->run("BEGIN IMMEDIATE");
      for (const GroupCommit::Write& write : writes) write.run();
      writer_->run("COMMIT");
      return std::nullopt;
    } catch (const SQLite::Exception& exception) {
      const Error error = error_of(exception);
      // A full disk may already have caused a rollback. Statements in flight would keep the transaction open.
      writer_->forget_statements();
      if (sqlite3_get_autocommit(writer_->database().getHandle()) == 0) { writer_->database().tryExec("ROLLBACK"); }
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
      reader_->forget_statements();
      if (sqlite3_get_autocommit(reader_->database().getHandle()) == 0) reader_->database().tryExec("ROLLBACK");
      return error_of(exception);
    }
  }

  static Error damaged(std::string_view what) {
    return Error{ErrorCode::internal, fmt::format("database: {} is damaged", what)};
  }
  static Error damaged_job(const std::string& job, std::string_view what) {
    return Error{ErrorCode::internal, fmt::format("job {} is damaged: {} not as it was written", job, what)};
  }

  /// Every event after that one, or the first damaged item as an error.
  static Result<std::vector<StoredEvent>> read_now(Connection& connection, const std::string& job, std::int64_t after) {
    const auto row = index_row_of(connection, job);
    if (row && row->damaged) return damaged_job(job, "its row in the index is");
    std::vector<StoredEvent> events;
    std::int64_t next = after + 1;
    SQLite::Statement& packs = connection.bound(
        "SELECT first, last, bytes, crc FROM pack WHERE job = ? AND last > ? ORDER BY last", job, after);
    while (packs.executeStep()) {
      const std::int64_t first = packs.getColumn(0).getInt64(), last = packs.getColumn(1).getInt64();
      const std::string bytes = packs.getColumn(2).getString();
      const bool right = packs.getColumn(3).getInt64() == checksum_of_pack(job, first, last, bytes);
      auto bodies = right ? unpack_events(bytes) : std::nullopt;
      if (!bodies || static_cast<std::int64_t>(bodies->size()) != last - first + 1 || first > next) {
        packs.reset();
        return damaged_job(job, fmt::format("event {}, or one soon after it, is", next));
      }
      for (; next <= last; ++next) events.push_back({next, std::move((*bodies)[next - first])});
    }
    packs.reset();
    SQLite::Statement& found = connection.bound(
        "SELECT sequence, body, crc FROM event WHERE job = ? AND sequence >= ? ORDER BY sequence", job, next);
    while (found.executeStep()) {
      StoredEvent event{found.getColumn(0).getInt64(), found.getColumn(1).getString()};
      const bool right = found.getColumn(2).getInt64() == checksum_of_event(job, event.sequence, event.body);
      if (!right || event.sequence != next) {
        found.reset();
        return damaged_job(job, fmt::format("event {} is", next));
      }
      events.push_back(std::move(event));
      ++next;
    }
    found.reset();
    const bool whole =
        row ? next == std::max(row->last_sequence, after) + 1 : events.empty() && !has_events(connection, job);
    if (!whole) return damaged_job(job, row ? fmt::format("event {} is", next) : "its row in the index is");
    return events;
  }

  static std::optional<JobIndexRow> index_row_of(Connection& connection, const std::string& job) {
    static const std::string sql = fmt::format("SELECT {} FROM job WHERE job = ?", kSqliteIndexColumns);
    SQLite::Statement& found = connection.bound(sql.c_str(), job);
    std::optional<JobIndexRow> row;
    if (found.executeStep()) row = index_row(found);
    found.reset();
    return row;
  }

  static bool has_events(Connection& connection, const std::string& job) {
    SQLite::Statement& found = connection.bound(
        "SELECT EXISTS (SELECT 1 FROM event WHERE job = ?1) OR EXISTS (SELECT 1 FROM pack WHERE job = ?1)", job);
    const bool has = found.executeStep() && found.getColumn(0).getInt() != 0;
    found.reset();
    return has;
  }

  void put_blob_now(const Blob& blob) {
    const std::int64_t key_crc = Checksum().add(std::string_view(blob.key)).value();
    SQLite::Statement& put = writer_->bound("INSERT OR REPLACE INTO blob VALUES(?, ?, ?, ?)", blob.key, key_crc,
                                            checksum_of_blob(blob.key, blob.bytes));
    put.bindNoCopy(4, blob.bytes.data(), static_cast<int>(blob.bytes.size()));
    put.exec();
    put.reset();
    writer_->run("DELETE FROM unused WHERE key = ?", blob.key);
    writer_->run("DELETE FROM holds WHERE holder = ?", blob.key);
    hold(blob.key, blob.holds);
  }

  void remove_blob_now(const std::string& key) {
    writer_->run("DELETE FROM blob WHERE key = ?", key);
    writer_->run("DELETE FROM unused WHERE key = ?", key);
    writer_->run("DELETE FROM holds WHERE holder = ?", key);
  }

  void hold(const std::string& holder, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) writer_->run("INSERT OR IGNORE INTO holds VALUES(?, ?)", holder, key);
  }

  void write_index(const JobIndexRow& row) {
    writer_->run("INSERT OR REPLACE INTO job VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row.job, row.state, row.name,
                 row.created_s, row.updated_s, row.next_wake_s, row.last_sequence, row.summary, row.bytes, row.packed,
                 checksum_of(row));
  }

  Appended append_now(const Append& append) {
    const auto before = index_row_of(*writer_, append.job);
    // The next sequence of a damaged job is unknown; a client that reads it again gets the error.
    if (before && before->damaged) return Appended::conflict;
    JobIndexRow row = append.index;
    row.job = append.job;
    row.last_sequence = before ? before->last_sequence : 0;
    row.bytes = before ? before->bytes : 0;
    row.packed = before ? before->packed : 0;
    if (row.last_sequence != append.expected_sequence) return Appended::conflict;
    for (const std::string& body : append.bodies) {
      ++row.last_sequence;
      row.bytes += static_cast<std::int64_t>(body.size());
      writer_->run("INSERT INTO event VALUES(?, ?, ?, ?)", append.job, row.last_sequence, body,
                   checksum_of_event(append.job, row.last_sequence, body));
    }
    write_index(row);
    for (const Blob& blob : append.blobs) put_blob_now(blob);
    if (!append.holds.empty()) hold("job/" + append.job, append.holds);
    return Appended::committed;
  }

  bool pack_now(const std::string& job) {
    auto row = index_row_of(*writer_, job);
    if (!row || row->damaged || row->packed >= row->last_sequence) return false;
    std::vector<std::string> bodies;
    std::size_t bytes = 0;
    std::int64_t next = row->packed + 1;
    bool right = true;
    SQLite::Statement& found = writer_->bound(
        "SELECT sequence, body, crc FROM event WHERE job = ? AND sequence >= ? ORDER BY sequence", job, next);
    while (right && bytes < kMostPackedBytes && found.executeStep()) {
      std::string body = found.getColumn(1).getString();
      right =
          found.getColumn(0).getInt64() == next && found.getColumn(2).getInt64() == checksum_of_event(job, next, body);
      bytes += body.size();
      bodies.push_back(std::move(body));
      ++next;
    }
    found.reset();
    if (!right || bodies.empty()) return false;
    const std::int64_t first = row->packed + 1, last = next - 1;
    const std::string packed = pack_events(bodies);
    SQLite::Statement& put = writer_->bound("INSERT INTO pack VALUES(?, ?, ?, ?, ?)", job, last, first,
                                            checksum_of_pack(job, first, last, packed));
    put.bindNoCopy(5, packed.data(), static_cast<int>(packed.size()));
    put.exec();
    put.reset();
    writer_->run("DELETE FROM event WHERE job = ? AND sequence <= ?", job, last);
    row->bytes += static_cast<std::int64_t>(packed.size()) - static_cast<std::int64_t>(bytes);
    row->packed = last;
    write_index(*row);
    return last < row->last_sequence;
  }

  bool sweep_now(const Sweep& sweep) {
    constexpr int at_once = 100;  // other writers need their turn
    constexpr int free_pages = 256;
    writer_->run(
        "DELETE FROM unused WHERE EXISTS (SELECT 1 FROM holds WHERE holds.key = unused.key) "
        "OR NOT EXISTS (SELECT 1 FROM blob WHERE blob.key = unused.key)");
    for (const std::string& prefix : sweep.prefixes) {
      writer_->run(
          "INSERT OR IGNORE INTO unused SELECT key, ?2 FROM blob WHERE key BETWEEN ?1 AND ?1 || char(1114111) "
          "AND NOT EXISTS (SELECT 1 FROM holds WHERE holds.key = blob.key)",
          prefix, sweep.now_s);
    }
    std::vector<std::string> over;
    SQLite::Statement& found = writer_->bound("SELECT key FROM unused WHERE since_s <= ? LIMIT ?",
                                              sweep.now_s - sweep.grace_s, std::int64_t{at_once});
    while (found.executeStep()) over.push_back(found.getColumn(0).getString());
    found.reset();
    for (const std::string& key : over) remove_blob_now(key);
    const int pages = pragma("PRAGMA page_count"), free = pragma("PRAGMA freelist_count");
    // A quarter may stay free for later use. Files of versions before 4 keep their free pages.
    const bool wasteful = free > free_pages && free > pages / 4 && pragma("PRAGMA auto_vacuum") != 0;
    if (wasteful) {
      SQLite::Statement& vacuum = writer_->bound("PRAGMA incremental_vacuum(256)");
      while (vacuum.executeStep()) {}
      vacuum.reset();
    }
    return over.size() == at_once || wasteful;
  }

  int pragma(const char* sql) {
    SQLite::Statement& found = writer_->bound(sql);
    const int value = found.executeStep() ? found.getColumn(0).getInt() : 0;
    found.reset();
    return value;
  }

  std::string path_;
  SqliteOptions options_;
  std::optional<LockFile> lock_;
  std::unique_ptr<Connection> writer_;  // for the writer thread only; null: writes are not possible
  std::mutex reader_mutex_;
  std::unique_ptr<Connection> reader_;
  bool damaged_names_;
  std::atomic<bool> may_write_;
  std::optional<Checkpointer> checkpointer_;
  GroupCommit group_;  // last: its thread uses the writer
};

/// A power failure after this leaves the file, or folder, as it is now.
bool flush_to_disk(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = file >= 0 && ::fsync(file) == 0;
  if (file >= 0) ::close(file);
  return flushed;
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, Post post, const SqliteOptions& options) {
  auto lock = LockFile::take(path);
  if (!lock) return lock.error();
  try {
    auto connections = connect(path, options);
    if (!connections) return connections.error();
    return std::unique_ptr<Store>(
        std::make_unique<SqliteStore>(path, options, std::move(*lock), *std::move(connections), post));
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
        auto connections = connect_read_only(path);
        if (connections) {
          return std::unique_ptr<Store>(std::make_unique<SqliteStore>(path, options, *std::move(again),
                                                                      *std::move(connections), std::move(post)));
        }
        if (connections.error().code == ErrorCode::invalid_input) return connections.error();
      } catch (const SQLite::Exception&) {}  // the first error is more specific
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

}  // namespace perseus::store
