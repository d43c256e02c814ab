#include "server/store/postgres_store.h"

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

#include "server/store/checksum.h"
#include "server/store/group_commit.h"
#include "server/store/packed_events.h"
#include "server/store/postgres_connection.h"

namespace perseus::store {
namespace {

/// Migrations from schema version i to i + 1. Never change an entry: add one. Texts are ordered by their bytes, as
/// everywhere else.
constexpr std::array kPostgresMigrations = {
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
    // Checksums (made by fill_checksums()), packed logs, and the record of used blobs. The tables get new names, so
    // that running servers of version 3 can neither read nor write what they do not understand.
    R"(ALTER TABLE job RENAME TO jobs;
       ALTER TABLE event RENAME TO events;
       ALTER TABLE blob RENAME TO blobs;
       ALTER TABLE token RENAME TO tokens;
       ALTER TABLE jobs ADD COLUMN bytes bigint NOT NULL DEFAULT 0, ADD COLUMN packed bigint NOT NULL DEFAULT 0,
                        ADD COLUMN crc bigint NOT NULL DEFAULT 0;
       ALTER TABLE events ADD COLUMN crc bigint NOT NULL DEFAULT 0;
       ALTER TABLE blobs ADD COLUMN crc bigint NOT NULL DEFAULT 0;
       ALTER TABLE tokens ADD COLUMN crc bigint NOT NULL DEFAULT 0;
       ALTER TABLE schema_version ADD COLUMN least integer NOT NULL DEFAULT 4;
       CREATE TABLE packs(job text COLLATE "C" NOT NULL, last bigint NOT NULL, first bigint NOT NULL,
                          bytes bytea NOT NULL, crc bigint NOT NULL, PRIMARY KEY(job, last));
       CREATE TABLE holds(holder text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, PRIMARY KEY(holder, key));
       CREATE INDEX holds_key ON holds(key);
       CREATE TABLE unused(key text COLLATE "C" PRIMARY KEY, since_s double precision NOT NULL);
       UPDATE jobs SET bytes = (SELECT coalesce(sum(octet_length(body)), 0) FROM events WHERE events.job = jobs.job);
       -- What holds what, from bodies as versions 1 to 3 wrote them: the key is 32 characters after "input":".
       INSERT INTO holds
         SELECT 'job/' || job, kind || substr(body, strpos(body, '"input":"') + 9, 32)
         FROM events, unnest(ARRAY['input/', 'frontier/']) kind
         WHERE starts_with(body, '{"kind":"profile_known"') AND strpos(body, '"input":"') > 0 ON CONFLICT DO NOTHING;
       INSERT INTO holds
         SELECT key, kind || CASE WHEN strpos(body, '"input":"') > 0
                                  THEN substr(body, strpos(body, '"input":"') + 9, 32) ELSE body END
         FROM (SELECT key, convert_from(bytes, 'UTF8') AS body FROM blobs WHERE starts_with(key, 'known/')) learned,
              unnest(ARRAY['input/', 'frontier/']) kind ON CONFLICT DO NOTHING;
       INSERT INTO holds
         SELECT 'job/' || jobs.job, key
         FROM (SELECT key, convert_from(bytes, 'UTF8') AS body FROM blobs WHERE starts_with(key, 'known/')) learned, jobs
         WHERE strpos(body, '"job":"' || jobs.job || '"') > 0 ON CONFLICT DO NOTHING)",
};
constexpr int kPostgresVersion = static_cast<int>(kPostgresMigrations.size());
/// Held while migrating, so that only one of several servers that start together migrates.
constexpr const char* kMigrationLock = "SELECT pg_advisory_xact_lock(7236828433)";

/// Limit on the bytes of appends that wait for their round trips.
constexpr std::size_t kMostPendingBytes = std::size_t{32} << 20;
constexpr int kReconnect_ms = 100;

constexpr const char* kIndexColumns =
    "job, state, name, created_s, updated_s, next_wake_s, last_sequence, summary, bytes, packed, crc";

/// For a row that begins with kIndexColumns.
JobIndexRow index_row(const PostgresRows& rows, int row) {
  JobIndexRow index{.job = rows.text(row, 0),
                    .state = rows.text(row, 1),
                    .name = rows.text(row, 2),
                    .created_s = rows.number(row, 3),
                    .updated_s = rows.number(row, 4),
                    .next_wake_s = rows.is_null(row, 5) ? std::nullopt : std::optional(rows.number(row, 5)),
                    .last_sequence = rows.integer(row, 6),
                    .summary = rows.text(row, 7),
                    .bytes = rows.integer(row, 8),
                    .packed = rows.integer(row, 9)};
  index.damaged = rows.integer(row, 10) != checksum_of(index);
  return index;
}

/// For a row of hash, role, job, name, created_s, expires_s, team.
TokenRow token_row(const PostgresRows& rows, int row) {
  return {rows.text(row, 0),   rows.text(row, 1),   rows.text(row, 2), rows.text(row, 3),
          rows.number(row, 4), rows.number(row, 5), rows.text(row, 6)};
}

/// Part of the migration to version 4: PostgreSQL cannot compute our checksums.
void fill_checksums(PostgresConnection& connection) {
  constexpr std::int64_t at_once = 1000;
  std::string job;
  for (std::int64_t sequence = 0;;) {
    const PostgresRows rows = connection.run(
        "SELECT job, sequence, body FROM events WHERE (job, sequence) > ($1, $2) ORDER BY job, sequence LIMIT $3",
        {std::string_view(job), sequence, at_once});
    if (rows.size() == 0) break;
    std::vector<std::string> jobs;
    std::vector<std::int64_t> sequences, checksums;
    for (int row = 0; row < rows.size(); ++row) {
      jobs.push_back(rows.text(row, 0));
      sequences.push_back(rows.integer(row, 1));
      checksums.push_back(checksum_of_event(jobs.back(), sequences.back(), rows.text(row, 2)));
    }
    connection.run(
        "UPDATE events SET crc = new.crc FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS new(job, sequence, "
        "crc) "
        "WHERE events.job = new.job AND events.sequence = new.sequence",
        {array_literal(jobs), array_literal(sequences), array_literal(checksums)});
    job = jobs.back();
    sequence = sequences.back();
  }
  const PostgresRows index = connection.script(fmt::format("SELECT {} FROM jobs", kIndexColumns));
  for (int row = 0; row < index.size(); ++row) {
    const JobIndexRow of = index_row(index, row);
    connection.run("UPDATE jobs SET crc = $2 WHERE job = $1", {std::string_view(of.job), checksum_of(of)});
  }
  const PostgresRows tokens = connection.script("SELECT hash, role, job, name, created_s, expires_s, team FROM tokens");
  for (int row = 0; row < tokens.size(); ++row) {
    const TokenRow of = token_row(tokens, row);
    connection.run("UPDATE tokens SET crc = $2 WHERE hash = $1", {std::string_view(of.hash), checksum_of(of)});
  }
  const PostgresRows keys = connection.script("SELECT key FROM blobs");
  for (int row = 0; row < keys.size(); ++row) {
    const std::string key = keys.text(row, 0);
    const std::array<PostgresValue, 1> values{key};
    const PostgresRows bytes = connection.run("SELECT bytes FROM blobs WHERE key = $1", values, true);
    connection.run("UPDATE blobs SET crc = $2 WHERE key = $1",
                   {std::string_view(key), checksum_of_blob(key, bytes.text(0, 0))});
  }
}

void migrate(PostgresConnection& connection) {
  const auto is_there = [&](const char* query) { return connection.script(query).size() > 0; };
  connection.script("BEGIN");
  connection.script(kMigrationLock);
  connection.script("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0");
  // CREATE ... IF NOT EXISTS requires the privilege to create even if the object exists.
  if (!is_there("SELECT FROM pg_namespace WHERE nspname = 'perseus'")) connection.script("CREATE SCHEMA perseus");
  if (!is_there("SELECT FROM pg_tables WHERE schemaname = 'perseus' AND tablename = 'schema_version'")) {
    connection.script("CREATE TABLE schema_version(version integer NOT NULL); INSERT INTO schema_version VALUES(0)");
  }
  const std::int64_t version = connection.script("SELECT version FROM schema_version").integer(0, 0);
  const std::int64_t least =
      version < 4 ? version : connection.script("SELECT least FROM schema_version").integer(0, 0);
  if (least > kPostgresVersion) {
    throw PostgresFailure{
        {ErrorCode::invalid_input,
         fmt::format("database: its schema was written by a later Perseus (version {}, which needs at least {}; this "
                     "one knows up to {})",
                     version, least, kPostgresVersion)}};
  }
  for (std::int64_t i = version; i < kPostgresVersion; ++i) {
    connection.script(kPostgresMigrations[i]);
    if (i + 1 == 4) fill_checksums(connection);
  }
  if (version < kPostgresVersion) {
    connection.script(fmt::format("UPDATE schema_version SET version = {}", kPostgresVersion));
  }
  connection.script("COMMIT");
}

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// An append and its outcome, until its `done`.
struct PendingAppend {
  Append append;
  Appended outcome = Appended::conflict;
};

/// The writer's transaction. It collects appends, which share their round trips; any other operation first executes
/// the appends before it.
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
    const std::string_view key = blob.key;
    connection_.run(
        "INSERT INTO blobs(key, bytes, crc) VALUES($1, $2, $3) "
        "ON CONFLICT (key) DO UPDATE SET bytes = excluded.bytes, crc = excluded.crc",
        {key, PostgresValue::bytes(blob.bytes), checksum_of_blob(blob.key, blob.bytes)});
    connection_.run("DELETE FROM unused WHERE key = $1", {key});
    connection_.run("DELETE FROM holds WHERE holder = $1", {key});
    hold(blob.key, blob.holds);
  }

  void hold(const std::string& holder, const std::vector<std::string>& keys) {
    if (keys.empty()) return;
    connection_.run("INSERT INTO holds(holder, key) SELECT $1, key FROM unnest($2::text[]) key ON CONFLICT DO NOTHING",
                    {std::string_view(holder), array_literal(keys)});
  }

  /// Notifies the other servers when (and if) the transaction commits.
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
    JobIndexRow row;                 ///< present row; an append overwrites what it changes
    const Append* newest = nullptr;  ///< of the accepted ones
  };

  void write_appends() {
    std::map<std::string, Job> jobs = locked_jobs();
    std::vector<std::string> event_jobs, event_bodies;
    std::vector<std::int64_t> event_sequences, event_checksums;
    for (PendingAppend* pending : appends_) {
      const Append& append = pending->append;
      Job& job = jobs[append.job];
      // The next sequence of a damaged job is unknown; a client that reads it again gets the error.
      const bool fits = !job.row.damaged && job.row.last_sequence == append.expected_sequence;
      pending->outcome = fits ? Appended::committed : Appended::conflict;
      if (pending->outcome == Appended::conflict) continue;
      job.newest = &append;
      for (const std::string& body : append.bodies) {
        event_jobs.push_back(append.job);
        event_sequences.push_back(++job.row.last_sequence);
        event_bodies.push_back(body);
        event_checksums.push_back(checksum_of_event(append.job, job.row.last_sequence, body));
        job.row.bytes += static_cast<std::int64_t>(body.size());
      }
      for (const Blob& blob : append.blobs) put_blob(blob);
      hold("job/" + append.job, append.holds);
    }
    write_index(jobs);
    if (event_jobs.empty()) return;
    connection_.run(
        "INSERT INTO events(job, sequence, body, crc) "
        "SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[])",
        {array_literal(event_jobs), array_literal(event_sequences), array_literal(event_bodies),
         array_literal(event_checksums)});
  }

  /// The rows of all these jobs, locked in the order of their ids; new jobs are created empty.
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
          "INSERT INTO jobs(job, state, name, created_s, updated_s, last_sequence) "
          "SELECT new, '', '', 0, 0, 0 FROM unnest($1::text[]) new ON CONFLICT DO NOTHING",
          {array_literal(created)});
    }
    std::vector<std::string> ids;
    for (const auto& [id, job] : jobs) ids.push_back(id);
    static const std::string sql =
        fmt::format("SELECT {} FROM jobs WHERE job = ANY($1::text[]) ORDER BY job FOR UPDATE", kIndexColumns);
    const PostgresRows rows = connection_.run(sql.c_str(), {array_literal(ids)});
    for (int row = 0; row < rows.size(); ++row) {
      JobIndexRow index = index_row(rows, row);
      if (index.last_sequence == 0) index.damaged = false;  // newly created
      jobs[rows.text(row, 0)].row = std::move(index);
    }
    return jobs;
  }

  void write_index(const std::map<std::string, Job>& jobs) {
    std::vector<std::string> ids, states, names, summaries;
    std::vector<std::optional<double>> created, updated, wakes;
    std::vector<std::int64_t> sequences, bytes, checksums;
    for (const auto& [id, job] : jobs) {
      if (job.newest == nullptr) continue;
      JobIndexRow index = job.newest->index;
      index.job = id;
      index.last_sequence = job.row.last_sequence;
      index.bytes = job.row.bytes;
      index.packed = job.row.packed;
      ids.push_back(id);
      states.push_back(index.state);
      names.push_back(index.name);
      created.emplace_back(index.created_s);
      updated.emplace_back(index.updated_s);
      wakes.push_back(index.next_wake_s);
      sequences.push_back(index.last_sequence);
      summaries.push_back(index.summary);
      bytes.push_back(index.bytes);
      checksums.push_back(checksum_of(index));
      notify("appended", index.last_sequence, id);
    }
    if (ids.empty()) return;
    connection_.run(
        "UPDATE jobs SET state = new.state, name = new.name, created_s = new.created_s, updated_s = new.updated_s, "
        "next_wake_s = new.next_wake_s, last_sequence = new.last_sequence, summary = new.summary, bytes = new.bytes, "
        "crc = new.crc FROM unnest($1::text[], $2::text[], $3::text[], $4::double precision[], $5::double precision[], "
        "$6::double precision[], $7::bigint[], $8::text[], $9::bigint[], $10::bigint[]) AS new(job, state, name, "
        "created_s, updated_s, next_wake_s, last_sequence, summary, bytes, crc) WHERE jobs.job = new.job",
        {array_literal(ids), array_literal(states), array_literal(names), array_literal(created),
         array_literal(updated), array_literal(wakes), array_literal(sequences), array_literal(summaries),
         array_literal(bytes), array_literal(checksums)});
  }

  PostgresConnection& connection_;
  const std::string& origin_;
  std::vector<PendingAppend*> appends_;
  std::size_t pending_bytes_ = 0;
  std::vector<std::string> notices_;
};

/// Receives the other servers' notifications, on a connection and a thread of its own.
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

  /// Waits for notifications, at most that long; true when the thread must end.
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

  /// Reports a change of everything: notifications were missed while the connection was lost.
  std::vector<Change> everything() {
    std::vector<Change> changes{{.of_tokens = true, .job = "", .sequence = 0}};
    const PostgresRows rows = connection_->script("SELECT job, last_sequence FROM jobs ORDER BY job");
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
    auto events = reading<Result<std::vector<StoredEvent>>>([&](PostgresConnection& connection) {
      connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");  // one snapshot for all reads
      try {
        auto read = read_now(connection, std::string(job), after);
        connection.script("COMMIT");
        return read;
      } catch (const PostgresFailure& failure) {
        if (!failure.lost) connection.script("ROLLBACK");
        throw;
      }
    });
    if (!events) return events.error();
    return *std::move(events);
  }

  Result<std::vector<JobIndexRow>> jobs() override {
    return reading<std::vector<JobIndexRow>>([](PostgresConnection& connection) {
      static const std::string sql = fmt::format("SELECT {} FROM jobs ORDER BY job", kIndexColumns);
      const PostgresRows rows = connection.run(sql.c_str(), {});
      std::vector<JobIndexRow> index;
      index.reserve(rows.size());
      for (int row = 0; row < rows.size(); ++row) index.push_back(index_row(rows, row));
      return index;
    });
  }

  void remove_job(std::string job, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, job = std::move(job)] {
      // The index row first, since appends lock it.
      const PostgresRows removed = transaction_->run("DELETE FROM jobs WHERE job = $1", {std::string_view(job)});
      transaction_->run("DELETE FROM events WHERE job = $1", {std::string_view(job)});
      transaction_->run("DELETE FROM packs WHERE job = $1", {std::string_view(job)});
      transaction_->run("DELETE FROM holds WHERE holder = 'job/' || $1", {std::string_view(job)});
      if (removed.affected() > 0) transaction_->notify("removed", 0, job);
    });
  }

  void pack_job(std::string job, Done<bool> done) override {
    group_.add<bool>([this, job = std::move(job)] { return pack_now(job); }, std::move(done));
  }

  void put_blob(Blob blob, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, blob = std::move(blob)] {
      transaction_->flush();
      transaction_->put_blob(blob);
    });
  }

  Result<std::optional<std::string>> blob(std::string_view key) override {
    using Found = std::optional<std::string>;
    auto found = reading<Result<Found>>([&](PostgresConnection& connection) -> Result<Found> {
      const std::array<PostgresValue, 1> values{key};
      const PostgresRows rows = connection.run("SELECT bytes, crc::text FROM blobs WHERE key = $1", values, true);
      if (rows.size() == 0) return Found{};
      std::string bytes = rows.text(0, 0);
      if (rows.integer(0, 1) != checksum_of_blob(key, bytes)) {
        return Error{ErrorCode::internal, fmt::format("database: the stored '{}' is damaged", key)};
      }
      return Found(std::move(bytes));
    });
    if (!found) return found.error();
    return *std::move(found);
  }

  Result<std::vector<std::string>> blob_keys(std::string_view prefix) override {
    return reading<std::vector<std::string>>([&](PostgresConnection& connection) {
      const PostgresRows rows =
          connection.run("SELECT key FROM blobs WHERE key >= $1 AND starts_with(key, $1) ORDER BY key", {prefix});
      std::vector<std::string> keys;
      for (int row = 0; row < rows.size(); ++row) keys.push_back(rows.text(row, 0));
      return keys;
    });
  }

  void remove_blob(std::string key, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, key = std::move(key)] {
      transaction_->run("DELETE FROM blobs WHERE key = $1", {std::string_view(key)});
      transaction_->run("DELETE FROM holds WHERE holder = $1", {std::string_view(key)});
    });
  }

  void sweep(Sweep sweep, Done<bool> done) override {
    group_.add<bool>([this, sweep = std::move(sweep)] { return sweep_now(sweep); }, std::move(done));
  }

  void claim(std::string work, std::string owner, double now_s, double lease_s, Done<bool> done) override {
    group_.add<bool>(
        [this, work = std::move(work), owner = std::move(owner), now_s, lease_s] {
          // An upsert locks the row before reading it, so of two servers the second sees the first one's change.
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
          "INSERT INTO tokens(hash, role, job, name, created_s, expires_s, team, crc) "
          "VALUES($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (hash) DO UPDATE SET "
          "role = excluded.role, job = excluded.job, name = excluded.name, created_s = excluded.created_s, "
          "expires_s = excluded.expires_s, team = excluded.team, crc = excluded.crc",
          {std::string_view(token.hash), std::string_view(token.role), std::string_view(token.job),
           std::string_view(token.name), token.created_s, token.expires_s, std::string_view(token.team),
           checksum_of(token)});
      transaction_->notify("tokens", 0, "");
    });
  }

  void revoke_token(std::string hash, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, hash = std::move(hash)] {
      const PostgresRows revoked = transaction_->run("DELETE FROM tokens WHERE hash = $1", {std::string_view(hash)});
      if (revoked.affected() > 0) transaction_->notify("tokens", 0, "");
    });
  }

  Result<std::vector<TokenRow>> tokens() override {
    using Rows = std::vector<TokenRow>;
    auto read = reading<Result<Rows>>([](PostgresConnection& connection) -> Result<Rows> {
      const PostgresRows rows =
          connection.run("SELECT hash, role, job, name, created_s, expires_s, team, crc FROM tokens ORDER BY hash", {});
      Rows tokens;
      for (int row = 0; row < rows.size(); ++row) {
        tokens.push_back(token_row(rows, row));
        if (rows.integer(row, 7) != checksum_of(tokens.back())) {
          return Error{ErrorCode::internal, "database: a token is damaged"};
        }
      }
      return tokens;
    });
    if (!read) return read.error();
    return *std::move(read);
  }

  [[nodiscard]] CommitCounts commits() const override { return group_.counts(); }

  Result<std::int64_t> size_bytes() override {
    return reading<std::int64_t>([](PostgresConnection& connection) {
      return connection.run("SELECT pg_database_size(current_database())", {}).integer(0, 0);
    });
  }

  Result<std::vector<HeldBlob>> held_blobs() override {
    return reading<std::vector<HeldBlob>>([](PostgresConnection& connection) {
      const PostgresRows rows = connection.run(
          "SELECT substr(holder, 5), key, octet_length(bytes) FROM holds JOIN blobs USING (key) "
          "WHERE starts_with(holder, 'job/') ORDER BY holder, key",
          {});
      std::vector<HeldBlob> held;
      for (int row = 0; row < rows.size(); ++row) {
        held.push_back({rows.text(row, 0), rows.text(row, 1), rows.integer(row, 2)});
      }
      return held;
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

  static Error damaged_job(const std::string& job, std::string_view what) {
    return Error{ErrorCode::internal, fmt::format("job {} is damaged: {} not as it was written", job, what)};
  }

  /// Every event after that one, or the first damaged item as an error.
  static Result<std::vector<StoredEvent>> read_now(PostgresConnection& connection, const std::string& job,
                                                   std::int64_t after) {
    static const std::string sql = fmt::format("SELECT {} FROM jobs WHERE job = $1", kIndexColumns);
    const std::string_view id = job;
    const PostgresRows index = connection.run(sql.c_str(), {id});
    if (index.size() > 0 && index_row(index, 0).damaged) return damaged_job(job, "its row in the index is");
    std::vector<StoredEvent> events;
    std::int64_t next = after + 1;
    const std::array<PostgresValue, 2> after_that{job, after};
    const PostgresRows packs = connection.run(
        "SELECT first::text, last::text, bytes, crc::text FROM packs WHERE job = $1 AND last > $2 ORDER BY packs.last",
        after_that, true);
    for (int row = 0; row < packs.size(); ++row) {
      const std::int64_t first = packs.integer(row, 0), last = packs.integer(row, 1);
      const std::string bytes = packs.text(row, 2);
      const bool right = packs.integer(row, 3) == checksum_of_pack(job, first, last, bytes);
      auto bodies = right ? unpack_events(bytes) : std::nullopt;
      if (!bodies || static_cast<std::int64_t>(bodies->size()) != last - first + 1 || first > next) {
        return damaged_job(job, fmt::format("event {}, or one soon after it, is", next));
      }
      for (; next <= last; ++next) events.push_back({next, std::move((*bodies)[next - first])});
    }
    const PostgresRows rows = connection.run(
        "SELECT sequence, body, crc FROM events WHERE job = $1 AND sequence >= $2 ORDER BY sequence", {id, next});
    events.reserve(events.size() + rows.size());
    for (int row = 0; row < rows.size(); ++row, ++next) {
      StoredEvent event{rows.integer(row, 0), rows.text(row, 1)};
      const bool right = rows.integer(row, 2) == checksum_of_event(job, event.sequence, event.body);
      if (!right || event.sequence != next) return damaged_job(job, fmt::format("event {} is", next));
      events.push_back(std::move(event));
    }
    if (index.size() == 0) {
      if (events.empty()) return events;
      return damaged_job(job, "its row in the index is");
    }
    if (next != std::max(index.integer(0, 6), after) + 1) return damaged_job(job, fmt::format("event {} is", next));
    return events;
  }

  bool pack_now(const std::string& job) {
    constexpr std::int64_t at_once = 4096;
    static const std::string sql = fmt::format("SELECT {} FROM jobs WHERE job = $1 FOR UPDATE", kIndexColumns);
    const std::string_view id = job;
    const PostgresRows index = transaction_->run(sql.c_str(), {id});
    if (index.size() == 0) return false;
    JobIndexRow row = index_row(index, 0);
    if (row.damaged || row.packed >= row.last_sequence) return false;
    const std::int64_t first = row.packed + 1;
    const PostgresRows found = transaction_->run(
        "SELECT sequence, body, crc FROM events WHERE job = $1 AND sequence >= $2 ORDER BY sequence LIMIT $3",
        {id, first, at_once});
    std::vector<std::string> bodies;
    std::size_t bytes = 0;
    std::int64_t next = first;
    for (int at = 0; at < found.size() && bytes < kMostPackedBytes; ++at, ++next) {
      std::string body = found.text(at, 1);
      const bool right = found.integer(at, 0) == next && found.integer(at, 2) == checksum_of_event(job, next, body);
      if (!right) return false;
      bytes += body.size();
      bodies.push_back(std::move(body));
    }
    if (bodies.empty()) return false;
    const std::int64_t last = next - 1;
    std::string packed = pack_events(bodies);
    row.bytes += static_cast<std::int64_t>(packed.size()) - static_cast<std::int64_t>(bytes);
    row.packed = last;
    const std::int64_t crc = checksum_of_pack(job, first, last, packed);
    transaction_->run("INSERT INTO packs(job, last, first, bytes, crc) VALUES($1, $2, $3, $4, $5)",
                      {id, last, first, PostgresValue::bytes(std::move(packed)), crc});
    transaction_->run("DELETE FROM events WHERE job = $1 AND sequence <= $2", {id, last});
    transaction_->run("UPDATE jobs SET bytes = $2, packed = $3, crc = $4 WHERE job = $1",
                      {id, row.bytes, row.packed, checksum_of(row)});
    return last < row.last_sequence;
  }

  /// Freed space stays with PostgreSQL; its autovacuum reuses it.
  bool sweep_now(const Sweep& sweep) {
    constexpr std::int64_t at_once = 100;  // other writers need their turn
    // Otherwise a job that another server commits meanwhile would not count as a holder of its blobs.
    transaction_->run("LOCK TABLE blobs IN SHARE ROW EXCLUSIVE MODE", {});
    transaction_->run(
        "DELETE FROM unused WHERE EXISTS (SELECT FROM holds WHERE holds.key = unused.key) "
        "OR NOT EXISTS (SELECT FROM blobs WHERE blobs.key = unused.key)",
        {});
    transaction_->run(
        "INSERT INTO unused(key, since_s) SELECT key, $2 FROM blobs, unnest($1::text[]) prefix "
        "WHERE starts_with(key, prefix) AND NOT EXISTS (SELECT FROM holds WHERE holds.key = blobs.key) "
        "ON CONFLICT DO NOTHING",
        {array_literal(sweep.prefixes), sweep.now_s});
    const PostgresRows over = transaction_->run(
        "DELETE FROM unused WHERE key IN (SELECT key FROM unused WHERE "
        "since_s <= $1 LIMIT $2) RETURNING key",
        {sweep.now_s - sweep.grace_s, at_once});
    std::vector<std::string> keys;
    for (int row = 0; row < over.size(); ++row) keys.push_back(over.text(row, 0));
    transaction_->run("DELETE FROM blobs WHERE key = ANY($1::text[])", {array_literal(keys)});
    transaction_->run("DELETE FROM holds WHERE holder = ANY($1::text[])", {array_literal(keys)});
    return over.size() == at_once;
  }

  /// Runs on the writer's thread. A failure before COMMIT was sent wrote nothing; it is tried again if its cause was
  /// the connection (once) or another server's transaction.
  std::optional<Error> commit(std::span<const GroupCommit::Write> writes) {
    constexpr int attempts = 5;
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
        if (!again || attempt == attempts) return failure.error;
      }
    }
  }

  /// Leaves a connection that is ready for a new transaction, or none.
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
          // While the listener cannot reach the database, the caller need not wait for it either.
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
  std::string origin_;                          ///< distinguishes our own notifications from others'
  std::unique_ptr<PostgresConnection> writer_;  // for the writer thread only
  std::optional<Transaction> transaction_;      // for the writer thread only
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

}  // namespace perseus::store
