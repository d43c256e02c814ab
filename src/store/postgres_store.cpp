#include "store/postgres_store.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "store/group_commit.h"
#include "store/postgres_connection.h"

namespace perseus {
namespace {

/// What turns a schema of version i into one of version i + 1. Never change an entry: add one. Texts are ordered by
/// their bytes, as everywhere else.
constexpr std::array postgres_migrations = {
    R"(CREATE TABLE job(job text COLLATE "C" PRIMARY KEY, state text NOT NULL, name text NOT NULL,
                        created_s double precision NOT NULL, updated_s double precision NOT NULL,
                        next_wake_s double precision, last_sequence bigint NOT NULL);
       CREATE TABLE event(job text COLLATE "C" NOT NULL, sequence bigint NOT NULL, body text NOT NULL,
                          PRIMARY KEY(job, sequence));
       CREATE TABLE blob(key text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
       CREATE TABLE claim(work text COLLATE "C" PRIMARY KEY, owner text NOT NULL, until_s double precision NOT NULL);
       CREATE TABLE token(hash text COLLATE "C" PRIMARY KEY, role text NOT NULL, job text NOT NULL, name text NOT NULL,
                          created_s double precision NOT NULL);)",
    "ALTER TABLE job ADD COLUMN summary text NOT NULL DEFAULT ''",
    "ALTER TABLE token ADD COLUMN expires_s double precision NOT NULL DEFAULT 0;"
    "ALTER TABLE token ADD COLUMN team text NOT NULL DEFAULT ''",
};
constexpr int postgres_version = static_cast<int>(postgres_migrations.size());
/// Taken while migrating, so that of servers that start together one does it.
constexpr const char* kMigrationLock = "SELECT pg_advisory_xact_lock(7236828433)";

/// Appends that wait for their round trips hold no more than this.
constexpr std::size_t kMostPendingBytes = std::size_t{32} << 20;
constexpr int kReconnect_ms = 100;

void migrate(PostgresConnection& connection) {
  connection.script("BEGIN");
  connection.script(kMigrationLock);
  connection.script(
      "CREATE SCHEMA IF NOT EXISTS perseus; CREATE TABLE IF NOT EXISTS schema_version(version integer NOT NULL);"
      "INSERT INTO schema_version SELECT 0 WHERE NOT EXISTS (SELECT FROM schema_version)");
  const std::int64_t version = connection.script("SELECT version FROM schema_version").integer(0, 0);
  if (version > postgres_version) {
    throw PostgresFailure{
        {ErrorCode::invalid_input,
         fmt::format("database: its schema was written by a later Perseus (version {}, this one knows "
                     "up to {})",
                     version, postgres_version)}};
  }
  for (std::int64_t i = version; i < postgres_version; ++i) connection.script(postgres_migrations[i]);
  connection.script(fmt::format("UPDATE schema_version SET version = {}", postgres_version));
  connection.script("COMMIT");
}

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// An append and what became of it, until its `done`.
struct PendingAppend {
  Append append;
  Appended outcome = Appended::conflict;
};

/// What runs inside the writer's transaction. Appends are collected, for they share their round trips; anything else
/// first has those made that came before it.
class Transaction {
 public:
  Transaction(PostgresConnection& connection, const std::string& origin) : connection_(connection), origin_(origin) {}

  void append(PendingAppend& pending) {
    for (const std::string& body : pending.append.bodies) pending_bytes_ += body.size();
    appends_.push_back(&pending);
    if (pending_bytes_ > kMostPendingBytes) flush();
  }

  PostgresRows run(const char* sql, std::initializer_list<PostgresValue> values) {
    flush();
    return connection_.run(sql, values);
  }

  void put_blob(const Blob& blob) {
    connection_.run("INSERT INTO blob VALUES($1, $2) ON CONFLICT (key) DO UPDATE SET bytes = excluded.bytes",
                    {std::string_view(blob.key), PostgresValue::bytes(blob.bytes)});
  }

  /// Tells the other servers when (and if) this commits.
  void notify(std::string_view what, std::int64_t sequence, std::string_view job) {
    notices_.push_back(fmt::format("{} {} {} {}", origin_, what, sequence, job));
  }

  void flush() {
    if (!appends_.empty()) write_appends();
    appends_.clear();
    pending_bytes_ = 0;
  }

  void commit() {
    flush();
    if (!notices_.empty()) {
      connection_.run("SELECT pg_notify('perseus', notice) FROM unnest($1::text[]) notice", {array_literal(notices_)});
    }
    connection_.script("COMMIT");
  }

 private:
  struct Job {
    std::int64_t last = 0;
    const Append* newest = nullptr;  ///< of those that were taken
  };

  void write_appends() {
    std::map<std::string, Job> jobs = locked_jobs();
    std::vector<std::string> event_jobs, event_bodies;
    std::vector<std::int64_t> event_sequences;
    for (PendingAppend* pending : appends_) {
      const Append& append = pending->append;
      Job& job = jobs[append.job];
      pending->outcome = job.last == append.expected_sequence ? Appended::committed : Appended::conflict;
      if (pending->outcome == Appended::conflict) continue;
      job.newest = &append;
      for (const std::string& body : append.bodies) {
        event_jobs.push_back(append.job);
        event_sequences.push_back(++job.last);
        event_bodies.push_back(body);
      }
      for (const Blob& blob : append.blobs) put_blob(blob);
    }
    write_index(jobs);
    if (event_jobs.empty()) return;
    connection_.run("INSERT INTO event SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])",
                    {array_literal(event_jobs), array_literal(event_sequences), array_literal(event_bodies)});
  }

  /// The rows of all jobs in question, locked in the order of their ids; those to be created are created empty.
  std::map<std::string, Job> locked_jobs() {
    std::map<std::string, Job> jobs;
    std::vector<std::string> created;
    for (const PendingAppend* pending : appends_) {
      jobs.try_emplace(pending->append.job);
      if (pending->append.expected_sequence == 0) created.push_back(pending->append.job);
    }
    if (!created.empty()) {
      std::ranges::sort(created);
      connection_.run(
          "INSERT INTO job SELECT new, '', '', 0, 0, NULL, 0, '' FROM unnest($1::text[]) new ON CONFLICT DO NOTHING",
          {array_literal(created)});
    }
    std::vector<std::string> ids;
    for (const auto& [id, job] : jobs) ids.push_back(id);
    const PostgresRows rows = connection_.run(
        "SELECT job, last_sequence FROM job WHERE job = ANY($1::text[]) ORDER BY job FOR UPDATE", {array_literal(ids)});
    for (int row = 0; row < rows.size(); ++row) jobs[rows.text(row, 0)].last = rows.integer(row, 1);
    return jobs;
  }

  void write_index(const std::map<std::string, Job>& jobs) {
    std::vector<std::string> ids, states, names, summaries;
    std::vector<std::optional<double>> created, updated, wakes;
    std::vector<std::int64_t> sequences;
    for (const auto& [id, job] : jobs) {
      if (job.newest == nullptr) continue;
      const JobIndexRow& index = job.newest->index;
      ids.push_back(id);
      states.push_back(index.state);
      names.push_back(index.name);
      created.emplace_back(index.created_s);
      updated.emplace_back(index.updated_s);
      wakes.push_back(index.next_wake_s);
      sequences.push_back(job.last);
      summaries.push_back(index.summary);
      notify("appended", job.last, id);
    }
    if (ids.empty()) return;
    connection_.run(
        "UPDATE job SET state = new.state, name = new.name, created_s = new.created_s, updated_s = new.updated_s, "
        "next_wake_s = new.next_wake_s, last_sequence = new.last_sequence, summary = new.summary "
        "FROM unnest($1::text[], $2::text[], $3::text[], $4::double precision[], $5::double precision[], "
        "$6::double precision[], $7::bigint[], $8::text[]) AS new(job, state, name, created_s, updated_s, next_wake_s, "
        "last_sequence, summary) WHERE job.job = new.job",
        {array_literal(ids), array_literal(states), array_literal(names), array_literal(created),
         array_literal(updated), array_literal(wakes), array_literal(sequences), array_literal(summaries)});
  }

  PostgresConnection& connection_;
  const std::string& origin_;
  std::vector<PendingAppend*> appends_;
  std::size_t pending_bytes_ = 0;
  std::vector<std::string> notices_;
};

/// Hears what other servers notify, on a connection and a thread of its own.
class Listener {
 public:
  Listener(std::string connection, std::string origin, Post post)
      : connection_string_(std::move(connection)), origin_(std::move(origin)), post_(std::move(post)) {
    listen(PostgresConnection::Patience::long_);
    thread_ = std::thread([this] { work(); });
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() {
    const std::uint64_t one = 1;
    while (::write(stop_, &one, sizeof one) < 0) {}
    thread_.join();
    ::close(stop_);
  }

  void tell(Store::Foreign foreign) {
    const std::lock_guard lock(mutex_);
    foreign_ = std::make_shared<Store::Foreign>(std::move(foreign));
  }

  [[nodiscard]] bool hears() const { return hears_; }

 private:
  struct Change {
    bool of_tokens = false;
    std::string job;
    std::int64_t sequence = 0;
  };

  void listen(PostgresConnection::Patience patience) {
    connection_ = std::make_unique<PostgresConnection>(connection_string_, patience);
    connection_->script("LISTEN perseus");
    hears_ = true;
  }

  void work() {
    while (!stopping(connection_ == nullptr ? kReconnect_ms : -1)) {
      try {
        if (connection_ == nullptr) {
          listen(PostgresConnection::Patience::short_);
          post(everything());
        }
        post(heard());
      } catch (const PostgresFailure&) {
        hears_ = false;
        connection_.reset();
      }
    }
  }

  /// Waits for notices, or for that long; true when it is time to end.
  bool stopping(int timeout_ms) {
    std::array<pollfd, 2> sockets{pollfd{stop_, POLLIN, 0},
                                  pollfd{connection_ == nullptr ? -1 : connection_->socket(), POLLIN, 0}};
    ::poll(sockets.data(), sockets.size(), timeout_ms);
    return sockets[0].revents != 0;
  }

  std::vector<Change> heard() {
    std::vector<Change> changes;
    for (const std::string& notice : connection_->notices()) {  // "ORIGIN WHAT SEQUENCE JOB"
      const std::size_t what = notice.find(' ') + 1;
      const std::size_t sequence = notice.find(' ', what) + 1;
      const std::size_t job = notice.find(' ', sequence) + 1;
      if (what == 0 || sequence == 0 || job == 0 || notice.compare(0, what - 1, origin_) == 0) continue;
      const bool of_tokens = notice.compare(what, sequence - 1 - what, "tokens") == 0;
      changes.push_back({of_tokens, notice.substr(job), std::strtoll(notice.c_str() + sequence, nullptr, 10)});
    }
    return changes;
  }

  /// As if everything had changed: notices were missed while the connection was lost.
  std::vector<Change> everything() {
    std::vector<Change> changes{{.of_tokens = true, .job = "", .sequence = 0}};
    const PostgresRows rows = connection_->script("SELECT job, last_sequence FROM job ORDER BY job");
    for (int row = 0; row < rows.size(); ++row) changes.push_back({false, rows.text(row, 0), rows.integer(row, 1)});
    return changes;
  }

  void post(std::vector<Change> changes) {
    const std::lock_guard lock(mutex_);
    if (changes.empty() || foreign_ == nullptr) return;
    post_([foreign = foreign_, changes = std::move(changes)] {
      for (const Change& change : changes) {
        if (change.of_tokens && foreign->tokens_changed) foreign->tokens_changed();
        if (!change.of_tokens && foreign->appended) foreign->appended(change.job, change.sequence);
      }
    });
  }

  std::string connection_string_;
  std::string origin_;
  Post post_;
  int stop_ = ::eventfd(0, EFD_CLOEXEC);
  std::unique_ptr<PostgresConnection> connection_;
  std::atomic<bool> hears_ = false;
  std::mutex mutex_;
  std::shared_ptr<Store::Foreign> foreign_;
  std::thread thread_;
};

class PostgresStore final : public Store {
 public:
  PostgresStore(const std::string& connection, Post post)
      : connection_string_(connection),
        origin_(random_name()),
        writer_(opened_and_migrated()),
        listener_(connection, origin_, post),
        group_(std::move(post), [this](std::span<const GroupCommit::Write> writes) { return commit(writes); }) {}

  void append(Append append, Done<Appended> done) override {
    auto pending = std::make_shared<PendingAppend>(PendingAppend{std::move(append)});
    group_.add({[this, pending] { transaction_->append(*pending); },
                [pending, done = std::move(done)](const std::optional<Error>& error) {
                  done(error ? Result<Appended>(*error) : Result<Appended>(pending->outcome));
                }});
  }

  Result<std::vector<StoredEvent>> read(std::string_view job, std::int64_t after) override {
    return reading<std::vector<StoredEvent>>([&](PostgresConnection& connection) {
      const PostgresRows rows = connection.run(
          "SELECT sequence, body FROM event WHERE job = $1 AND sequence > $2 ORDER BY sequence", {job, after});
      std::vector<StoredEvent> events;
      events.reserve(rows.size());
      for (int row = 0; row < rows.size(); ++row) events.push_back({rows.integer(row, 0), rows.text(row, 1)});
      return events;
    });
  }

  Result<std::vector<JobIndexRow>> jobs() override {
    return reading<std::vector<JobIndexRow>>([](PostgresConnection& connection) {
      const PostgresRows rows = connection.run(
          "SELECT job, state, name, created_s, updated_s, next_wake_s, last_sequence, summary FROM job ORDER BY job",
          {});
      std::vector<JobIndexRow> index;
      index.reserve(rows.size());
      for (int row = 0; row < rows.size(); ++row) {
        index.push_back({.job = rows.text(row, 0),
                         .state = rows.text(row, 1),
                         .name = rows.text(row, 2),
                         .created_s = rows.number(row, 3),
                         .updated_s = rows.number(row, 4),
                         .next_wake_s = rows.is_null(row, 5) ? std::nullopt : std::optional(rows.number(row, 5)),
                         .last_sequence = rows.integer(row, 6),
                         .summary = rows.text(row, 7)});
      }
      return index;
    });
  }

  void remove_job(std::string job, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, job = std::move(job)] {
      // The index row first: it is what appends lock.
      const PostgresRows removed = transaction_->run("DELETE FROM job WHERE job = $1", {std::string_view(job)});
      transaction_->run("DELETE FROM event WHERE job = $1", {std::string_view(job)});
      if (removed.affected() > 0) transaction_->notify("removed", 0, job);
    });
  }

  void put_blob(Blob blob, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, blob = std::move(blob)] {
      transaction_->flush();
      transaction_->put_blob(blob);
    });
  }

  Result<std::optional<std::string>> blob(std::string_view key) override {
    return reading<std::optional<std::string>>([&](PostgresConnection& connection) {
      const std::array<PostgresValue, 1> values{key};
      const PostgresRows rows = connection.run("SELECT bytes FROM blob WHERE key = $1", values, true);
      return rows.size() == 0 ? std::nullopt : std::optional(rows.text(0, 0));
    });
  }

  Result<std::vector<std::string>> blob_keys(std::string_view prefix) override {
    return reading<std::vector<std::string>>([&](PostgresConnection& connection) {
      const PostgresRows rows =
          connection.run("SELECT key FROM blob WHERE key >= $1 AND starts_with(key, $1) ORDER BY key", {prefix});
      std::vector<std::string> keys;
      for (int row = 0; row < rows.size(); ++row) keys.push_back(rows.text(row, 0));
      return keys;
    });
  }

  void remove_blob(std::string key, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, key = std::move(key)] {
      transaction_->run("DELETE FROM blob WHERE key = $1", {std::string_view(key)});
    });
  }

  void claim(std::string work, std::string owner, double now_s, double lease_s, Done<bool> done) override {
    group_.add<bool>(
        [this, work = std::move(work), owner = std::move(owner), now_s, lease_s] {
          // An upsert locks the row before it looks at it, so of two servers the second sees what the first did.
          const PostgresRows taken = transaction_->run(
              "INSERT INTO claim VALUES($1, $2, $3) ON CONFLICT (work) DO UPDATE SET owner = $2, until_s = $3 "
              "WHERE claim.owner = $2 OR claim.until_s <= $4",
              {std::string_view(work), std::string_view(owner), now_s + lease_s, now_s});
          return taken.affected() > 0;
        },
        std::move(done));
  }

  void release(std::string work, std::string owner, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, work = std::move(work), owner = std::move(owner)] {
      transaction_->run("DELETE FROM claim WHERE work = $1 AND owner = $2",
                        {std::string_view(work), std::string_view(owner)});
    });
  }

  void put_token(TokenRow token, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, token = std::move(token)] {
      transaction_->run(
          "INSERT INTO token VALUES($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (hash) DO UPDATE SET "
          "role = excluded.role, job = excluded.job, name = excluded.name, created_s = excluded.created_s, "
          "expires_s = excluded.expires_s, team = excluded.team",
          {std::string_view(token.hash), std::string_view(token.role), std::string_view(token.job),
           std::string_view(token.name), token.created_s, token.expires_s, std::string_view(token.team)});
      transaction_->notify("tokens", 0, "");
    });
  }

  void revoke_token(std::string hash, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, hash = std::move(hash)] {
      const PostgresRows revoked = transaction_->run("DELETE FROM token WHERE hash = $1", {std::string_view(hash)});
      if (revoked.affected() > 0) transaction_->notify("tokens", 0, "");
    });
  }

  Result<std::vector<TokenRow>> tokens() override {
    return reading<std::vector<TokenRow>>([](PostgresConnection& connection) {
      const PostgresRows rows =
          connection.run("SELECT hash, role, job, name, created_s, expires_s, team FROM token ORDER BY hash", {});
      std::vector<TokenRow> tokens;
      for (int row = 0; row < rows.size(); ++row) {
        tokens.push_back({rows.text(row, 0), rows.text(row, 1), rows.text(row, 2), rows.text(row, 3),
                          rows.number(row, 4), rows.number(row, 5), rows.text(row, 6)});
      }
      return tokens;
    });
  }

  void on_foreign(Foreign foreign) override { listener_.tell(std::move(foreign)); }

  Status backup(const std::string& path) override {
    return Error{ErrorCode::usage, path + ": a PostgreSQL database is backed up with pg_dump"};
  }

 private:
  std::unique_ptr<PostgresConnection> opened_and_migrated() {
    auto connection = std::make_unique<PostgresConnection>(connection_string_, PostgresConnection::Patience::long_);
    migrate(*connection);
    return connection;
  }

  /// On the writer's thread. What failed before its COMMIT was sent wrote nothing and is tried again where the reason
  /// was the connection (once) or another server's transaction.
  std::optional<Error> commit(std::span<const GroupCommit::Write> writes) {
    constexpr int kAttempts = 5;
    bool reconnected = false;
    for (int attempt = 1;; ++attempt) {
      bool committing = false;
      try {
        if (writer_ == nullptr) writer_ = std::make_unique<PostgresConnection>(connection_string_);
        writer_->script("BEGIN ISOLATION LEVEL READ COMMITTED");
        transaction_.emplace(*writer_, origin_);
        for (const GroupCommit::Write& write : writes) write.run();
        transaction_->flush();
        committing = true;
        transaction_->commit();
        return std::nullopt;
      } catch (const PostgresFailure& failure) {
        give_up_transaction();
        const bool again = failure.retry || (failure.lost && !committing && !std::exchange(reconnected, true));
        if (!again || attempt == kAttempts) return failure.error;
      }
    }
  }

  /// Leaves a connection that can begin anew, or none.
  void give_up_transaction() {
    transaction_.reset();
    if (writer_ == nullptr) return;
    try {
      writer_->script("ROLLBACK");
    } catch (const PostgresFailure&) { writer_.reset(); }
  }

  template <class T, class Work>
  Result<T> reading(Work work) {
    const std::lock_guard lock(reader_mutex_);
    for (bool reconnected = false;;) {
      try {
        if (reader_ == nullptr) {
          // While the listener cannot reach the database there is no point in having the caller wait for it.
          if (!listener_.hears()) return Error{ErrorCode::unavailable, "database: the connection is lost"};
          reader_ = std::make_unique<PostgresConnection>(connection_string_);
          reconnected = true;
        }
        return work(*reader_);
      } catch (const PostgresFailure& failure) {
        if (reader_ == nullptr || failure.lost) reader_.reset();
        if (!failure.lost || reconnected) return failure.error;
      }
    }
  }

  std::string connection_string_;
  std::string origin_;                          ///< tells our own notices from others'
  std::unique_ptr<PostgresConnection> writer_;  // the writer thread's
  std::optional<Transaction> transaction_;      // the same
  std::mutex reader_mutex_;
  std::unique_ptr<PostgresConnection> reader_;
  Listener listener_;
  GroupCommit group_;  // last: its thread uses the writer
};

}  // namespace

Result<std::unique_ptr<Store>> open_postgres_store(const std::string& connection, Post post) {
  try {
    return std::unique_ptr<Store>(std::make_unique<PostgresStore>(connection, std::move(post)));
  } catch (const PostgresFailure& failure) { return failure.error; }
}

}  // namespace perseus
