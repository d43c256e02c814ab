#include "server/postgres/postgres_store.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>
#include <vector>

#include "server/postgres/postgres_connection.h"
#include "server/postgres/postgres_right.h"
#include "server/postgres/postgres_schema.h"
#include "server/postgres/postgres_transaction.h"
#include "server/store/sql_store.h"

namespace perseus::postgres {
namespace {

class PostgresStore final : public store::SqlStore<PostgresStore, PostgresConnection> {
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
        auto read = store::read_log(connection, std::string(job), after);
        connection.script("COMMIT");
        return read;
      } catch (const PostgresFailure& failure) {
        if (!failure.lost) connection.script("ROLLBACK");
        throw;
      }
    });
  }

  Result<std::optional<std::string>> blob(std::string_view key) override {
    return reading<std::optional<std::string>>(
        [&](PostgresConnection& connection) { return store::read_blob(connection, std::string(key)); });
  }

  Result<std::vector<std::string>> blob_keys(std::string_view prefix) override {
    return reading<std::vector<std::string>>([&](PostgresConnection& connection) {
      std::vector<std::string> keys;
      connection.each(
          "SELECT key FROM blobs WHERE key >= $1 AND starts_with(key, $1) ORDER BY key",
          [&](const PostgresRow& found) { keys.push_back(found.text(0)); }, prefix);
      return keys;
    });
  }

  Result<std::int64_t> size_bytes() override {
    return reading<std::int64_t>([](PostgresConnection& connection) {
      return connection.run("SELECT pg_database_size(current_database())", {}).integer(0, 0);
    });
  }

  Status backup(const std::string& path) override {
    return Error{ErrorCode::usage, path + ": a PostgreSQL database is backed up with pg_dump"};
  }

 private:
  friend class store::SqlStore<PostgresStore, PostgresConnection>;

  PostgresTransaction& writing() { return *transaction_; }

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
