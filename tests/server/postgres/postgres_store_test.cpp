// Servers on one real PostgreSQL: one of them may write; the database fails and recovers.
#include "server/postgres/postgres_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/postgres/postgres_connection.h"
#include "tests/server/postgres/shared_server.h"
#include "tests/support/killed_writer.h"
#include "tests/support/store_executor.h"

namespace perseus::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// One server process: its store and its I/O thread.
struct Replica {
  /// Takes the right to write, also from one that has it: as 3 s after that one's last word.
  explicit Replica(const std::string& database) : Replica(database, "") { take_right(); }
  Replica(const std::string& database, std::string of) : database_(database), address(std::move(of)) {
    auto opened = postgres::open_postgres_store(database, executor.post());
    PERSEUS_CHECK(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
    store = std::move(*opened);
  }

  void take_right() {
    postgres::PostgresConnection(database_).script("UPDATE writer SET until = '-infinity'");
    PERSEUS_CHECK(store->become_writer(address)->is_us, "the right to write was free");
  }
  static Append to(const std::string& job, std::int64_t expected, std::vector<std::string> bodies) {
    Append append;
    append.job = job;
    append.expected_sequence = expected;
    append.bodies = std::move(bodies);
    append.index = {job, "registered", "name", 1, 2, std::nullopt, 0, ""};
    return append;
  }
  Result<Appended> append(const std::string& job, std::int64_t expected, std::vector<std::string> bodies) {
    return executor.outcome<Appended>([&](auto done) { store->append(to(job, expected, std::move(bodies)), done); });
  }
  Status write(const std::function<void(Store::Done<Ok>)>& call) { return executor.outcome<Ok>(call); }

  std::string database_, address;
  testing::StoreExecutor executor;
  std::unique_ptr<Store> store;
};

/// The result of `read`, which is repeated while it fails: a connection that was cut may be found so only by a read.
template <class Read>
auto once_it_reads(Read read) {
  auto result = read();
  const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!result.ok() && std::chrono::steady_clock::now() < patience) result = read();
  return result;
}

class Postgres : public ::testing::Test {
 protected:
  void SetUp() override {
    PERSEUS_NEEDS_POSTGRES();
    server_ = &testing::shared_server();
    database_ = server_->new_database();
  }

  testing::PostgresServer* server_ = nullptr;
  std::string database_;
};

TEST_F(Postgres, OneServerHasTheRightToWriteUntilItIsSilentOrResigns) {
  Replica one(database_, "http://one"), two(database_, "http://two");
  EXPECT_TRUE(one.store->become_writer("http://one")->is_us);
  const Writer other = *two.store->become_writer("http://two");
  EXPECT_FALSE(other.is_us);
  EXPECT_EQ(other.address, "http://one");
  EXPECT_TRUE(one.store->become_writer("http://one")->is_us);  // renewed
  EXPECT_EQ(postgres::PostgresConnection(database_)
                .script("SELECT extract(epoch FROM until - clock_timestamp()) BETWEEN 2 AND 3 FROM writer")
                .text(0, 0),
            "t");
  one.store->resign();
  EXPECT_TRUE(two.store->become_writer("http://two")->is_us);
  EXPECT_FALSE(one.store->become_writer("http://one")->is_us);
  one.store->resign();  // it has nothing to give
  EXPECT_TRUE(two.append("a", 0, {"{1}"}).ok());
  one.take_right();  // as after the other one's silence
  EXPECT_EQ(two.store->become_writer("http://two")->address, "http://one");
}

TEST_F(Postgres, AServerWithoutTheRightWritesNothing) {
  Replica one(database_);
  ASSERT_TRUE(one.append("a", 0, {"{1}"}).ok());
  Replica two(database_);  // the first one stands still meanwhile, and wakes up
  const auto refused = one.append("a", 1, {"{2}"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("another server has the right to write"));
  EXPECT_FALSE(one.write([&](auto done) { one.store->put_token({"hash", "job", "", "", 0, 0, ""}, done); }).ok());
  EXPECT_FALSE(one.write([&](auto done) { one.store->remove_job("a", done); }).ok());
  EXPECT_THAT(*two.store->read("a", 0), ElementsAre(StoredEvent{1, "{1}"}));
  EXPECT_THAT(*two.store->tokens(), IsEmpty());
  EXPECT_TRUE(two.append("a", 1, {"{2}"}).ok());
}

/// The right changes hands while both write: each job's log is one server's events without a gap, then the other's.
TEST_F(Postgres, ARightThatChangesHandsWithinCommitsLosesNothingAcknowledged) {
  Replica one(database_), two(database_, "two");
  one.take_right();
  std::vector<std::string> acknowledged;
  int answered = 0;
  constexpr int kAppends = 400;
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    two.take_right();
  });
  for (int i = 0; i < kAppends; ++i) {
    one.store->append(Replica::to("a", i, {fmt::format("{}", i)}), [&, i](const Result<Appended>& result) {
      ++answered;
      if (result.ok()) acknowledged.push_back(fmt::format("{}", i));
    });
    if (i % 8 == 0) one.executor.run_one();
  }
  while (answered < kAppends) one.executor.run_one();
  other.join();
  const auto events = *two.store->read("a", 0);
  ASSERT_GE(events.size(), acknowledged.size());
  for (std::size_t i = 0; i < acknowledged.size(); ++i) EXPECT_EQ(events[i].body, acknowledged[i]);
  EXPECT_FALSE(one.append("a", static_cast<std::int64_t>(events.size()), {"late"}).ok());
}

TEST_F(Postgres, AWriteThatTheDatabaseDoesNotTakeHurtsNoOther) {
  Replica one(database_);
  std::vector<Result<Appended>> results;
  const auto keep = [&](Result<Appended> result) { results.push_back(std::move(result)); };
  one.store->append(Replica::to("a", 0, {"{1}"}), keep);
  one.store->append(Replica::to("b", 0, {std::string("nul \0 inside", 12)}), keep);
  one.store->append(Replica::to("c", 0, {"not UTF-8: \xff"}), keep);
  one.store->append(Replica::to("a", 1, {R"({"quotes \" and \\ backslashes": [{}]})", "", "NULL"}), keep);
  while (results.size() < 4) one.executor.run_one();
  EXPECT_EQ(*results[0], Appended::committed);
  ASSERT_FALSE(results[1].ok());
  EXPECT_EQ(results[1].error().code, ErrorCode::invalid_input);
  EXPECT_THAT(results[1].error().message, HasSubstr("NUL"));
  ASSERT_FALSE(results[2].ok());
  EXPECT_EQ(results[2].error().code, ErrorCode::invalid_input);
  EXPECT_EQ(*results[3], Appended::committed);
  EXPECT_THAT(*one.store->read("a", 0),
              ElementsAre(StoredEvent{1, "{1}"}, StoredEvent{2, R"({"quotes \" and \\ backslashes": [{}]})"},
                          StoredEvent{3, ""}, StoredEvent{4, "NULL"}));
  EXPECT_THAT(*one.store->read("b", 0), IsEmpty());
}

TEST_F(Postgres, RecoversByItselfWhenTheDatabaseWasGone) {
  Replica one(database_);
  ASSERT_TRUE(one.append("a", 0, {"{1}"}).ok());
  ASSERT_TRUE(one.store->jobs().ok());
  server_->stop();
  const Result<Appended> refused = one.append("a", 1, {"{2}"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  const auto unread = one.store->read("a", 0);
  ASSERT_FALSE(unread.ok());
  EXPECT_EQ(unread.error().code, ErrorCode::unavailable);

  server_->start();
  EXPECT_EQ(*one.append("a", 1, {"{second try}"}), Appended::committed);
  EXPECT_THAT(*one.store->read("a", 0), ElementsAre(StoredEvent{1, "{1}"}, StoredEvent{2, "{second try}"}));
}

TEST_F(Postgres, ARestartBetweenTwoCallsIsNotNoticed) {
  Replica one(database_);
  ASSERT_TRUE(one.append("a", 0, {"{1}"}).ok());
  server_->stop();
  server_->start();
  EXPECT_EQ(*one.append("a", 1, {"{2}"}), Appended::committed);
}

TEST_F(Postgres, LosesNothingAcknowledgedWhenItsConnectionsAreCut) {
  Replica one(database_);
  postgres::PostgresConnection axe(database_);
  std::int64_t known = 0;
  std::vector<std::string> acknowledged;
  for (int cut = 0; cut < 20; ++cut) {
    // A burst of appends that build on each other; the connection is cut somewhere within it.
    int answered = 0;
    constexpr int kBurst = 40;
    std::int64_t expected = known;
    for (int i = 0; i < kBurst; ++i) {
      const std::string body = fmt::format("{} {}", cut, i);
      one.store->append(Replica::to("a", expected++, {body}), [&, body](const Result<Appended>& result) {
        ++answered;
        if (result.ok() && *result == Appended::committed) acknowledged.push_back(body);
      });
      if (i == cut * 2) {
        axe.script(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()");
      }
    }
    while (answered < kBurst) one.executor.run_one();
    const auto events = once_it_reads([&] { return one.store->read("a", 0); });
    ASSERT_TRUE(events.ok()) << events.error().message;
    std::vector<std::string> bodies;
    for (const StoredEvent& event : *events) bodies.push_back(event.body);
    known = static_cast<std::int64_t>(bodies.size());
    // Every acknowledged event is there, in order; an event whose answer the cut lost may be there as well.
    auto at = bodies.begin();
    for (const std::string& body : acknowledged) {
      at = std::find(at, bodies.end(), body);
      ASSERT_NE(at, bodies.end()) << body;
    }
    const auto jobs = once_it_reads([&] { return one.store->jobs(); });
    ASSERT_TRUE(jobs.ok()) << jobs.error().message;
    // A cut before anything of the first burst was stored leaves no job.
    ASSERT_EQ(jobs->empty() ? 0 : jobs->front().last_sequence, known);
  }
  EXPECT_FALSE(acknowledged.empty());
}

TEST_F(Postgres, LosesNothingAcknowledgedWhenAServerIsKilled) {
  Replica survivor(database_);
  std::mt19937 dice(7);  // NOLINT(cert-msc51-cpp): the same moments every time
  for (int kill = 0; kill < 40; ++kill) {
    survivor.store->resign();
    // The moment of the kill: after this many acknowledgments, wherever the writer is then.
    const int until = std::uniform_int_distribution(1, 60)(dice);
    const std::int64_t acknowledged = testing::last_acknowledged_before_the_kill("postgres", database_, until, 0);

    // The other server continues from wherever the killed one got to.
    survivor.take_right();
    auto events = *survivor.store->read("job", 0);
    ASSERT_GE(static_cast<std::int64_t>(events.size()), acknowledged);
    const auto last = static_cast<std::int64_t>(events.size());
    ASSERT_EQ(*survivor.append("job", last, {fmt::format("{}", last + 1)}), Appended::committed);
    events = *survivor.store->read("job", 0);
    for (std::size_t i = 0; i < events.size(); ++i) ASSERT_EQ(events[i].body, fmt::format("{}", i + 1));
  }
}

TEST_F(Postgres, IsRefusedWhenALaterVersionWroteItsSchema) {
  { const Replica one(database_); }
  postgres::PostgresConnection(database_).script("UPDATE schema_version SET version = 99, least = 98");
  testing::StoreExecutor executor;
  const auto store = postgres::open_postgres_store(database_, executor.post());
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(store.error().message,
              HasSubstr("written by a later Perseus (version 99, which needs at least 98; this one knows up to 1)"));
}

TEST_F(Postgres, OfALaterVersionThatLeavesThisOneAloneIsUsed) {
  { const Replica one(database_); }
  postgres::PostgresConnection(database_).script(
      "UPDATE schema_version SET version = 99, least = 1; ALTER TABLE jobs ADD COLUMN later text;"
      "ALTER TABLE events ADD COLUMN later text; ALTER TABLE blobs ADD COLUMN later text;"
      "ALTER TABLE tokens ADD COLUMN later text; ALTER TABLE packs ADD COLUMN later text");
  Replica one(database_);
  EXPECT_EQ(*one.append("a", 0, {"{1}", "{2}"}), Appended::committed);
  for (int i = 0; *one.executor.outcome<bool>([&](auto done) { one.store->pack_job("a", done); }); ++i)
    ASSERT_LT(i, 1000);
  EXPECT_EQ(one.store->read("a", 0)->size(), 2U);
  EXPECT_EQ(postgres::PostgresConnection(database_).script("SELECT version FROM schema_version").integer(0, 0), 99);
}

TEST_F(Postgres, NeedsNoRightToCreateSchemasWhereItOwnsOne) {
  postgres::PostgresConnection owner(database_);
  const std::string name = owner.script("SELECT current_database()").text(0, 0);
  owner.script("CREATE ROLE limited_" + name + " LOGIN; REVOKE ALL ON DATABASE " + name +
               " FROM PUBLIC; GRANT CONNECT ON DATABASE " + name + " TO limited_" + name +
               "; CREATE SCHEMA perseus AUTHORIZATION limited_" + name);
  for (int start = 0; start < 2; ++start) {
    testing::StoreExecutor executor;
    const auto store = postgres::open_postgres_store(database_ + " user=limited_" + name, executor.post());
    ASSERT_TRUE(store.ok()) << store.error().message;
  }
}

TEST_F(Postgres, ADamagedRowIsRefusedAndTheOthersAreNot) {
  Replica one(database_);
  for (const char* job : {"event", "index", "pack", "gap", "right"}) {
    ASSERT_TRUE(one.append(job, 0, {"{1}", "{2}", "{3}"}).ok());
  }
  (void)one.executor.outcome<bool>([&](auto done) { one.store->pack_job("pack", done); });
  ASSERT_TRUE(one.write([&](auto done) { one.store->put_blob({"input/x", "bytes"}, done); }).ok());
  postgres::PostgresConnection(database_).script(
      "UPDATE events SET body = '{9}' WHERE job = 'event' AND sequence = 2;"
      "UPDATE jobs SET summary = 'x' WHERE job = 'index';"
      "UPDATE packs SET bytes = set_byte(bytes, 4, 7) WHERE job = 'pack';"
      "DELETE FROM events WHERE job = 'gap' AND sequence = 3; UPDATE blobs SET bytes = 'bytez'");
  EXPECT_EQ(one.store->read("event", 0).error().message, "job event is damaged: event 2 is not as it was written");
  EXPECT_EQ(one.store->read("event", 0).error().code, ErrorCode::internal);
  EXPECT_EQ(one.store->read("index", 0).error().message,
            "job index is damaged: its row in the index is not as it was written");
  EXPECT_THAT(one.store->read("pack", 0).error().message, HasSubstr("job pack is damaged: event 1"));
  EXPECT_THAT(one.store->read("gap", 0).error().message, HasSubstr("job gap is damaged: event 3"));
  EXPECT_EQ(one.store->read("right", 0)->size(), 3U);
  EXPECT_THAT(one.store->blob("input/x").error().message, HasSubstr("the stored 'input/x' is damaged"));
  EXPECT_EQ(*one.append("index", 3, {"{4}"}), Appended::conflict);
  const std::vector<JobIndexRow> index = *one.store->jobs();
  for (const JobIndexRow& row : index) EXPECT_EQ(row.damaged, row.job == "index") << row.job;
}

TEST_F(Postgres, AUrlThatCannotBeReadIsNotShown) {
  testing::StoreExecutor executor;
  for (const char* url : {"postgresql://u:secret%zz@h/d", "postgresql://u:se@cret@h/d", "postgresql://u:secret/x@h/d",
                          "postgresql://u:12/secret@h/d", "u:secret@h/d", "postgresql://h/d?secret", "secret"}) {
    const auto store = postgres::open_postgres_store(url, executor.post());
    ASSERT_FALSE(store.ok()) << url;
    EXPECT_EQ(store.error().code, ErrorCode::usage) << url;
    for (const char* part : {"secret", "cret", "12"}) {
      EXPECT_THAT(store.error().message, ::testing::Not(HasSubstr(part))) << url;
    }
  }
}

TEST_F(Postgres, IsRefusedWhereThereIsNone) {
  testing::StoreExecutor executor;
  const auto store = postgres::open_postgres_store("host=/no/such/folder dbname=perseus", executor.post());
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::unavailable);
  EXPECT_THAT(store.error().message, HasSubstr("/no/such/folder"));
}

TEST_F(Postgres, LeavesBackupsToPgDump) {
  Replica one(database_);
  EXPECT_THAT(one.store->backup("/tmp/x").error().message, HasSubstr("pg_dump"));
}

}  // namespace
}  // namespace perseus::store
