// A store for tests: SQLite in memory, which fails on command.
//
// Problem: the server's tests need a store without disk, thread or time, several servers on one database, and a
//          database that fails.
// Input:   stores that share a TestDatabase.
// Output:  as in store.h. A write runs when Post runs it, at any later time on the one thread, never inside the call;
//          writes that have not run when the store is destroyed are lost, as in a crash.
// Errors:  as in store.h; while `failure` is set, every call fails with it and changes nothing; `write_failure` does
//          the same to writes, and `lost_answer` after they are made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/sqlite/sqlite_store.h"
#include "server/store/store.h"

namespace perseus::testing {

class TestDatabase {
 public:
  TestDatabase() = default;
  TestDatabase& operator=(const TestDatabase&) = delete;
  /// Copies logs, blobs and tokens.
  TestDatabase(const TestDatabase& other) {
    for (const store::JobIndexRow& job : other.jobs()) put_job(job, other.log(job.job));
    for (const auto& [key, bytes] : other.blobs()) put_blob(key, bytes);
    for (const store::TokenRow& token : other.tokens()) put_token(token);
  }

  std::optional<Error> failure;
  std::optional<Error> write_failure;          ///< of writes only, as on a full disk
  std::optional<Error> lost_answer;            ///< writes are made and fail with it: the connection broke
  bool may_read = true;                        ///< false: a read is a programming error
  std::set<std::string, std::less<>> damaged;  ///< jobs and blobs that cannot be read
  std::int64_t writes = 0;                     ///< that servers have made

  [[nodiscard]] store::Store& stored() const { return *stored_; }

  // What is stored, whether it can be read or not.
  [[nodiscard]] std::vector<store::JobIndexRow> jobs() const { return *stored_->jobs(); }
  [[nodiscard]] store::JobIndexRow job(const std::string& id) const {
    for (store::JobIndexRow& row : jobs()) {
      if (row.job == id) return std::move(row);
    }
    return {};
  }
  [[nodiscard]] bool has_job(const std::string& id) const { return job(id).job == id; }
  [[nodiscard]] std::vector<store::StoredEvent> log(const std::string& id, std::int64_t after = 0) const {
    return *stored_->read(id, after);
  }
  [[nodiscard]] std::map<std::string, std::string, std::less<>> blobs() const {
    std::map<std::string, std::string, std::less<>> found;
    const std::vector<std::string> keys = *stored_->blob_keys("");
    for (const std::string& key : keys) found.emplace(key, blob(key));
    return found;
  }
  [[nodiscard]] bool has_blob(const std::string& key) const {
    return std::ranges::count(*stored_->blob_keys(key), key) > 0;
  }
  [[nodiscard]] std::string blob(const std::string& key) const { return stored_->blob(key)->value(); }
  [[nodiscard]] std::vector<store::TokenRow> tokens() const { return *stored_->tokens(); }
  [[nodiscard]] std::vector<store::HistoryRow> history(std::string_view job) const {
    return *stored_->history(job, 0, kEver);
  }
  [[nodiscard]] std::vector<store::SiteRow> site_history() const { return *stored_->site_history(0, kEver); }

  // Changes behind the server.
  void put_job(const store::JobIndexRow& row, const std::vector<store::StoredEvent>& events,
               std::vector<std::string> holds = {}) const {
    store::Append append{row.job, 0, {}, row, {}, std::move(holds)};
    for (const store::StoredEvent& event : events) append.bodies.push_back(event.body);
    stored_->append(std::move(append), [](const auto& made) { PERSEUS_CHECK(made.ok(), "append"); });
  }
  void remove_job(const std::string& id) const {
    stored_->remove_job(id, [](const auto& made) { PERSEUS_CHECK(made.ok(), "remove_job"); });
  }
  void add_event(const std::string& id, std::string body) const {
    const store::JobIndexRow row = job(id);
    stored_->append({id, row.last_sequence, {std::move(body)}, row, {}, {}},
                    [](const auto& made) { PERSEUS_CHECK(made.ok(), "append"); });
  }
  template <class Change>
  void change_log(const std::string& id, Change change) const {
    const store::JobIndexRow row = job(id);
    std::vector<store::StoredEvent> events = log(id);
    change(events);
    remove_job(id);
    put_job(row, events);
  }
  void put_blob(const std::string& key, const std::string& bytes) const {
    stored_->put_blob({key, bytes, {}}, [](const auto& made) { PERSEUS_CHECK(made.ok(), "put_blob"); });
  }
  void remove_blob(const std::string& key) const {
    stored_->remove_blob(key, [](const auto& made) { PERSEUS_CHECK(made.ok(), "remove_blob"); });
  }
  void put_token(const store::TokenRow& token) const {
    stored_->put_token(token, [](const auto& made) { PERSEUS_CHECK(made.ok(), "put_token"); });
  }

 private:
  static constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();
  std::unique_ptr<store::Store> stored_ = sqlite::sqlite_store_in_memory();
};

class TestStore final : public store::Store {
 public:
  explicit TestStore(store::Post post, std::shared_ptr<TestDatabase> database = std::make_shared<TestDatabase>())
      : post_(std::move(post)), database_(std::move(database)) {}

  void append(store::Append append, Done<store::Appended> done) override {
    write(&Store::append, std::move(append), std::move(done));
  }
  void remove_job(std::string job, Done<Ok> done) override {
    write(&Store::remove_job, std::move(job), std::move(done));
  }
  void pack_job(std::string job, Done<bool> done) override { write(&Store::pack_job, std::move(job), std::move(done)); }
  void write_history(std::vector<store::HistoryRow> rows, Done<Ok> done) override {
    write(&Store::write_history, std::move(rows), std::move(done));
  }
  void age_history(store::AgeHistory age, Done<bool> done) override {
    write(&Store::age_history, age, std::move(done));
  }
  void write_site_history(std::vector<store::SiteRow> rows, Done<Ok> done) override {
    write(&Store::write_site_history, std::move(rows), std::move(done));
  }
  void put_blob(store::Blob blob, Done<Ok> done) override { write(&Store::put_blob, std::move(blob), std::move(done)); }
  void remove_blob(std::string key, Done<Ok> done) override {
    write(&Store::remove_blob, std::move(key), std::move(done));
  }
  void sweep(store::Sweep sweep, Done<bool> done) override { write(&Store::sweep, std::move(sweep), std::move(done)); }
  void put_token(store::TokenRow token, Done<Ok> done) override {
    write(&Store::put_token, std::move(token), std::move(done));
  }
  void revoke_token(std::string hash, Done<Ok> done) override {
    write(&Store::revoke_token, std::move(hash), std::move(done));
  }

  Result<std::vector<store::StoredEvent>> read(std::string_view job, std::int64_t after) override {
    if (auto failure = cannot_read()) return *std::move(failure);
    const std::string id(job);
    if (is_damaged(id))
      return Error{ErrorCode::internal, "job " + id + " is damaged: event 2 is not as it was written"};
    return stored().read(job, after);
  }
  Result<std::vector<store::JobIndexRow>> jobs() override {
    if (auto failure = cannot_read()) return *std::move(failure);
    auto rows = stored().jobs();
    for (store::JobIndexRow& row : *rows) row.damaged = is_damaged(row.job);
    return rows;
  }
  Result<std::vector<store::HistoryRow>> history(std::string_view job, std::int64_t from_s,
                                                 std::int64_t to_s) override {
    if (auto failure = cannot_read()) return *std::move(failure);
    return stored().history(job, from_s, to_s);
  }
  Result<std::vector<store::HistoryBytes>> history_bytes() override {
    if (auto failure = cannot_read()) return *std::move(failure);
    return stored().history_bytes();
  }
  Result<std::vector<store::SiteRow>> site_history(std::int64_t from_s, std::int64_t to_s) override {
    if (auto failure = cannot_read()) return *std::move(failure);
    return stored().site_history(from_s, to_s);
  }
  Result<std::optional<std::string>> blob(std::string_view key) override {
    if (auto failure = cannot_read()) return *std::move(failure);
    if (is_damaged(key)) return Error{ErrorCode::internal, "the stored '" + std::string(key) + "' is damaged"};
    return stored().blob(key);
  }
  Result<std::vector<std::string>> blob_keys(std::string_view prefix) override {
    if (auto failure = cannot_read()) return *std::move(failure);
    return stored().blob_keys(prefix);
  }
  Result<std::vector<store::HeldBlob>> held_blobs() override {
    if (auto failure = cannot_read()) return *std::move(failure);
    return stored().held_blobs();
  }
  Result<std::vector<store::TokenRow>> tokens() override {
    if (auto failure = cannot_read()) return *std::move(failure);
    return stored().tokens();
  }
  Result<std::int64_t> size_bytes() override {
    if (auto failure = cannot_read()) return *std::move(failure);
    return stored().size_bytes();
  }
  Status backup(const std::string& path) override { return stored().backup(path); }

 private:
  [[nodiscard]] store::Store& stored() const { return database_->stored(); }
  [[nodiscard]] std::optional<Error> cannot_read() const {
    PERSEUS_CHECK(database_->may_read, "no read of the store on a thread that must not wait");
    return database_->failure;
  }
  [[nodiscard]] bool is_damaged(std::string_view what) const { return database_->damaged.contains(what); }
  template <class Value, class T>
  void write(void (Store::*call)(Value, Done<T>), Value value, Done<T> done) {
    post_([alive = std::weak_ptr(alive_), database = database_, call, value = std::move(value),
           done = std::move(done)]() mutable {
      if (alive.expired()) return;
      const auto& failure = database->failure ? database->failure : database->write_failure;
      if (failure) return done(*failure);
      ++database->writes;
      std::optional<Result<T>> made;
      (database->stored().*call)(std::move(value), [&](Result<T> result) { made = std::move(result); });
      done(*made && database->lost_answer ? Result<T>(*database->lost_answer) : *std::move(made));
    });
  }

  store::Post post_;
  std::shared_ptr<TestDatabase> database_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>();  // not shared
};

}  // namespace perseus::testing
