#include "server/postgres/postgres_store.h"

#include <fmt/format.h>

#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "server/postgres/postgres_connection.h"
#include "server/postgres/postgres_right.h"
#include "server/postgres/postgres_schema.h"
#include "server/postgres/postgres_transaction.h"
#include "server/store/group_commit.h"
#include "server/store/shared_tables.h"

namespace perseus::postgres {
namespace {

/// Every event after that one, or the first damaged item as an error.
Result<std::vector<store::StoredEvent>> read_log(PostgresConnection& connection, const std::string& job,
                                                 std::int64_t after) {
  static const std::string sql = fmt::format("SELECT {} FROM jobs WHERE job = $1", store::kJobColumns);
  store::LogReader log(job, after);
  const PostgresRows index = connection.run(sql.c_str(), {std::string_view(job)});
  std::optional<store::JobIndexRow> row;
  if (index.size() > 0) row = store::job_index_row(PostgresRow{index, 0});
  if (row && row->damaged) return log.damaged_index();
  const std::array<PostgresValue, 2> after_that{job, after};
  const PostgresRows packs = connection.run(
      "SELECT first::text, last::text, bytes, crc::text FROM packs WHERE job = $1 AND last > $2 ORDER BY packs.last",
      after_that, true);
  for (int k = 0; k < packs.size(); ++k) {
    const Status whole = log.add_pack(packs.integer(k, 0), packs.integer(k, 1), packs.text(k, 2), packs.integer(k, 3));
    if (!whole) return whole.error();
  }
  const PostgresRows events =
      connection.run("SELECT sequence, body, crc FROM events WHERE job = $1 AND sequence >= $2 ORDER BY sequence",
                     {std::string_view(job), log.next()});
  for (int k = 0; k < events.size(); ++k) {
    const Status whole = log.add_event({events.integer(k, 0), events.text(k, 1)}, events.integer(k, 2));
    if (!whole) return whole.error();
  }
  return log.finish(row);
}

class PostgresStore final : public store::Store {
 public:
  PostgresStore(const std::string& connection, store::Post post)
      : connection_string_(connection),
        writer_(opened_and_migrated()),
        right_(connection),
        // A standby that takes over reads at once: a connection that comes too late then would end it.
        reader_(std::make_unique<PostgresConnection>(connection, PostgresConnection::Patience::long_)),
        group_(std::move(post), [this](store::GroupCommit::Writes writes) { return commit(writes); }) {}

  Result<store::Writer> become_writer(const std::string& address) override { return right_.take(address); }
  void resign() override { right_.give_back(); }

  void append(store::Append append, Done<store::Appended> done) override {
    auto pending = std::make_shared<PendingAppend>(PendingAppend{std::move(append)});
    const auto appended = [pending, done = std::move(done)](const Result<Ok>& durable) {
      done(durable ? Result<store::Appended>(pending->outcome) : durable.error());
    };
    group_.add_work(appended, [this, pending] { transaction_->append(*pending); });
  }

  Result<std::vector<store::StoredEvent>> read(std::string_view job, std::int64_t after) override {
    return reading<std::vector<store::StoredEvent>>([&](PostgresConnection& connection) {
      connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");  // one snapshot for all reads
      try {
        auto read = read_log(connection, std::string(job), after);
        connection.script("COMMIT");
        return read;
      } catch (const PostgresFailure& failure) {
        if (!failure.lost) connection.script("ROLLBACK");
        throw;
      }
    });
  }

  Result<std::vector<store::JobIndexRow>> jobs() override {
    return reading<std::vector<store::JobIndexRow>>(store::read_jobs<PostgresConnection>);
  }

  void remove_job(std::string job, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, job = std::move(job)] { store::remove_job(*transaction_, job); });
  }

  void pack_job(std::string job, Done<bool> done) override {
    group_.add<bool>([this, job = std::move(job)] { return transaction_->pack_job(job); }, std::move(done));
  }

  void write_history(std::vector<store::HistoryRow> rows, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, rows = std::move(rows)] { transaction_->write_history(rows); });
  }

  Result<std::vector<store::HistoryRow>> history(std::string_view job, std::int64_t from_s,
                                                 std::int64_t to_s) override {
    return reading<std::vector<store::HistoryRow>>([&](PostgresConnection& connection) {
      return store::read_history(connection, std::string(job), from_s, to_s);
    });
  }

  void age_history(store::AgeHistory age, Done<bool> done) override {
    group_.add<bool>([this, age] { return store::age_history(*transaction_, age); }, std::move(done));
  }

  Result<std::vector<store::HistoryBytes>> history_bytes() override {
    return reading<std::vector<store::HistoryBytes>>(store::read_history_bytes<PostgresConnection>);
  }

  void write_site_history(std::vector<store::SiteRow> rows, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, rows = std::move(rows)] { transaction_->write_site_history(rows); });
  }

  Result<std::vector<store::SiteRow>> site_history(std::int64_t from_s, std::int64_t to_s) override {
    return reading<std::vector<store::SiteRow>>(
        [=](PostgresConnection& connection) { return store::read_site_history(connection, from_s, to_s); });
  }

  void put_blob(store::Blob blob, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, blob = std::move(blob)] {
      transaction_->flush();
      transaction_->put_blob(blob);
    });
  }

  Result<std::optional<std::string>> blob(std::string_view key) override {
    using Found = std::optional<std::string>;
    return reading<Found>([&](PostgresConnection& connection) -> Result<Found> {
      const std::array<PostgresValue, 1> values{key};
      const PostgresRows rows = connection.run("SELECT bytes, crc::text FROM blobs WHERE key = $1", values, true);
      if (rows.size() == 0) return Found{};
      std::string bytes = rows.text(0, 0);
      if (rows.integer(0, 1) != store::checksum_of_blob(key, bytes)) {
        return store::damaged_in_database(fmt::format("the stored '{}'", key));
      }
      return Found(std::move(bytes));
    });
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
    group_.add_work(std::move(done), [this, key = std::move(key)] { store::remove_blob(*transaction_, key); });
  }

  void sweep(store::Sweep sweep, Done<bool> done) override {
    group_.add<bool>([this, sweep = std::move(sweep)] { return transaction_->sweep(sweep); }, std::move(done));
  }

  void put_token(store::TokenRow token, Done<Ok> done) override {
    group_.add_work(std::move(done), [this, token = std::move(token)] { store::put_token(*transaction_, token); });
  }

  void revoke_token(std::string hash, Done<Ok> done) override {
    group_.add_work(std::move(done),
                    [this, hash = std::move(hash)] { transaction_->run("DELETE FROM tokens WHERE hash = $1", hash); });
  }

  Result<std::vector<store::TokenRow>> tokens() override {
    return reading<std::vector<store::TokenRow>>(store::read_tokens<PostgresConnection>);
  }

  [[nodiscard]] store::CommitCounts commits() const override { return group_.counts(); }

  Result<std::int64_t> size_bytes() override {
    return reading<std::int64_t>([](PostgresConnection& connection) {
      return connection.run("SELECT pg_database_size(current_database())", {}).integer(0, 0);
    });
  }

  Result<std::vector<store::HeldBlob>> held_blobs() override {
    return reading<std::vector<store::HeldBlob>>(store::read_held_blobs<PostgresConnection>);
  }

  Status backup(const std::string& path) override {
    return Error{ErrorCode::usage, path + ": a PostgreSQL database is backed up with pg_dump"};
  }

 private:
  std::unique_ptr<PostgresConnection> opened_and_migrated() {
    auto connection = std::make_unique<PostgresConnection>(connection_string_, PostgresConnection::Patience::long_);
    migrate(*connection);
    return connection;
  }

  /// Runs on the writer's thread. A failure before COMMIT was sent wrote nothing; it is tried again if its cause was
  /// the connection (once) or another server's transaction.
  std::optional<Error> commit(store::GroupCommit::Writes writes) {
    constexpr int attempts = 5;
    bool reconnected = false;
    for (int attempt = 1;; ++attempt) {
      bool committing = false;
      try {
        if (writer_ == nullptr) writer_ = std::make_unique<PostgresConnection>(connection_string_);
        writer_->script("BEGIN ISOLATION LEVEL READ COMMITTED");
        transaction_.emplace(*writer_);
        for (const auto& write : writes) write->run();
        transaction_->flush();
        right_.check(*writer_);
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
          reconnected = true;
          reader_ = std::make_unique<PostgresConnection>(connection_string_);
        }
        return work(*reader_);
      } catch (const PostgresFailure& failure) {
        if (reader_ == nullptr || failure.lost) reader_.reset();
        if (!failure.lost || reconnected) return failure.error;
      }
    }
  }

  std::string connection_string_;
  std::unique_ptr<PostgresConnection> writer_;      // for the writer thread only
  std::optional<PostgresTransaction> transaction_;  // for the writer thread only
  PostgresRight right_;
  std::mutex reader_mutex_;
  std::unique_ptr<PostgresConnection> reader_;
  store::GroupCommit group_;  // last: its thread uses the writer
};

}  // namespace

Result<std::unique_ptr<store::Store>> open_postgres_store(const std::string& connection, store::Post post) {
  try {
    return std::unique_ptr<store::Store>(std::make_unique<PostgresStore>(connection, std::move(post)));
  } catch (const PostgresFailure& failure) { return failure.error; }
}

}  // namespace perseus::postgres
