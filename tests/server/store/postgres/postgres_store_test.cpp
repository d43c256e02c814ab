// Several servers on one real PostgreSQL: they agree, receive each other's changes and divide work; the database
// fails and recovers.
#include "server/store/postgres_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/store/postgres_connection.h"
#include "tests/server/store/postgres/shared_server.h"
#include "tests/support/killed_writer.h"
#include "tests/support/store_executor.h"

namespace perseus::store {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

/// One server process: its store, its I/O thread, and the changes of other servers that it received.
struct Replica {
  explicit Replica(const std::string& database) {
    auto opened = open_postgres_store(database, executor.post());
    PERSEUS_CHECK(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
    store = std::move(*opened);
    store->on_foreign({[this](std::string job, std::int64_t sequence) { heard.emplace_back(std::move(job), sequence); },
                       [this] { ++heard_of_tokens; }});
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
  bool claim(const std::string& owner, double now_s) {
    return *executor.outcome<bool>([&](auto done) { store->claim("work", owner, now_s, 10, done); });
  }
  Status write(const std::function<void(Store::Done<Ok>)>& call) { return executor.outcome<Ok>(call); }

  testing::StoreExecutor executor;
  std::unique_ptr<Store> store;
  std::vector<std::pair<std::string, std::int64_t>> heard;
  int heard_of_tokens = 0;
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

TEST_F(Postgres, OfTwoServersTheSecondToAppendHasAConflict) {
  Replica one(database_), two(database_);
  EXPECT_EQ(*one.append("a", 0, {"{1}"}), Appended::committed);
  EXPECT_EQ(*two.append("a", 0, {"{other}"}), Appended::conflict);
  EXPECT_EQ(*two.append("a", 1, {"{2}"}), Appended::committed);
  EXPECT_EQ(*one.append("a", 1, {"{other}"}), Appended::conflict);
  EXPECT_THAT(*one.store->read("a", 0), ElementsAre(StoredEvent{1, "{1}"}, StoredEvent{2, "{2}"}));
}

TEST_F(Postgres, AServerIsNotifiedOfOtherServersWritesOnly) {
  Replica one(database_), two(database_);
  ASSERT_TRUE(one.append("a job, with spaces", 0, {"{1}", "{2}"}).ok());
  ASSERT_TRUE(one.write([&](auto done) { one.store->put_token({"hash", "job", "", "", 0, 0, ""}, done); }).ok());
  ASSERT_TRUE(one.write([&](auto done) { one.store->remove_job("a job, with spaces", done); }).ok());
  while (two.heard.size() < 2 || two.heard_of_tokens < 1) two.executor.run_one();
  EXPECT_THAT(two.heard, ElementsAre(Pair("a job, with spaces", 2), Pair("a job, with spaces", 0)));

  // The next change that the first server receives is the second's: it does not receive its own.
  ASSERT_TRUE(two.append("b", 0, {"{1}"}).ok());
  while (one.heard.empty()) one.executor.run_one();
  EXPECT_THAT(one.heard, ElementsAre(Pair("b", 1)));
  EXPECT_EQ(one.heard_of_tokens, 0);
}

TEST_F(Postgres, WorkIsOneServersUntilItsLeaseIsOver) {
  Replica one(database_), two(database_);
  EXPECT_TRUE(one.claim("one", 100));
  EXPECT_FALSE(two.claim("two", 109));
  EXPECT_TRUE(one.claim("one", 109));  // renewed until 119
  EXPECT_FALSE(two.claim("two", 118));
  one.store.reset();  // as after a kill: the claim is not released
  EXPECT_TRUE(two.claim("two", 119));
}

TEST_F(Postgres, ServersThatWriteToTheSameJobsAtOnceLoseNothing) {
  constexpr int kEach = 150;
  const std::vector<std::string> jobs{"a", "b", "c"};
  Replica replicas[]{Replica(database_), Replica(database_)};
  // Each adds its events to all jobs at once, in the opposite order of the other, and again after a conflict.
  struct Writer {
    Replica* replica;
    std::string job;
    std::int64_t known = 0;
    int written = 0;
  };
  std::vector<Writer> writers;
  for (const std::string& job : jobs) writers.push_back({&replicas[0], job});
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) writers.push_back({&replicas[1], *job});
  std::atomic<int> conflicts = 0;  // counted by both replicas' threads
  const std::function<void(Writer&)> next = [&](Writer& writer) {
    writer.replica->store->append(
        Replica::to(writer.job, writer.known, {fmt::format("{}", writer.written)}),
        [&](const Result<Appended>& result) {
          ASSERT_TRUE(result.ok()) << result.error().message;
          if (*result == Appended::committed) {
            ++writer.known;
            ++writer.written;
          } else {
            ++conflicts;
            writer.known += static_cast<std::int64_t>(writer.replica->store->read(writer.job, writer.known)->size());
          }
          if (writer.written < kEach) next(writer);
        });
  };
  for (Writer& writer : writers) next(writer);
  const auto is_done = [&](const Replica& replica) {
    return std::ranges::all_of(writers, [&](const Writer& w) { return w.replica != &replica || w.written == kEach; });
  };
  std::thread other([&] {
    while (!is_done(replicas[1])) replicas[1].executor.run_one();
  });
  while (!is_done(replicas[0])) replicas[0].executor.run_one();
  other.join();

  EXPECT_GT(conflicts.load(), 0);
  for (const std::string& job : jobs) {
    const auto events = *replicas[0].store->read(job, 0);
    ASSERT_EQ(events.size(), 2U * kEach);
    std::map<std::string, int> times;
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].sequence, static_cast<std::int64_t>(i) + 1);
      ++times[events[i].body];
    }
    for (const auto& [body, count] : times) EXPECT_EQ(count, 2) << body;
  }
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
  // Other servers may have written meanwhile, so the store reports all jobs as changed.
  while (one.heard.empty() || one.heard_of_tokens == 0) one.executor.run_one();
  EXPECT_EQ(one.heard.front().first, "a");
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
  PostgresConnection axe(database_);
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
    // The moment of the kill: after this many acknowledgments, wherever the writer is then.
    const int until = std::uniform_int_distribution(1, 60)(dice);
    const std::int64_t acknowledged = testing::last_acknowledged_before_the_kill("postgres", database_, until, 0);

    // The other server continues from wherever the killed one got to.
    auto events = *survivor.store->read("job", 0);
    ASSERT_GE(static_cast<std::int64_t>(events.size()), acknowledged);
    const auto last = static_cast<std::int64_t>(events.size());
    const Result<Appended> carried_on = survivor.append("job", last, {fmt::format("{}", last + 1)});
    // Its transaction may have been decided after this read.
    if (*carried_on == Appended::conflict) continue;
    events = *survivor.store->read("job", 0);
    for (std::size_t i = 0; i < events.size(); ++i) ASSERT_EQ(events[i].body, fmt::format("{}", i + 1));
  }
}

TEST_F(Postgres, IsRefusedWhenALaterVersionWroteItsSchema) {
  { const Replica one(database_); }
  PostgresConnection(database_).script("UPDATE schema_version SET version = 99, least = 98");
  testing::StoreExecutor executor;
  const auto store = open_postgres_store(database_, executor.post());
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(store.error().message,
              HasSubstr("written by a later Perseus (version 99, which needs at least 98; this one knows up to 1)"));
}

TEST_F(Postgres, OfALaterVersionThatLeavesThisOneAloneIsUsed) {
  { const Replica one(database_); }
  PostgresConnection(database_).script(
      "UPDATE schema_version SET version = 99, least = 1; ALTER TABLE jobs ADD COLUMN later text;"
      "ALTER TABLE events ADD COLUMN later text; ALTER TABLE blobs ADD COLUMN later text;"
      "ALTER TABLE tokens ADD COLUMN later text; ALTER TABLE packs ADD COLUMN later text");
  Replica one(database_);
  EXPECT_EQ(*one.append("a", 0, {"{1}", "{2}"}), Appended::committed);
  for (int i = 0; *one.executor.outcome<bool>([&](auto done) { one.store->pack_job("a", done); }); ++i)
    ASSERT_LT(i, 1000);
  EXPECT_EQ(one.store->read("a", 0)->size(), 2U);
  EXPECT_EQ(PostgresConnection(database_).script("SELECT version FROM schema_version").integer(0, 0), 99);
}

TEST_F(Postgres, NeedsNoRightToCreateSchemasWhereItOwnsOne) {
  PostgresConnection owner(database_);
  const std::string name = owner.script("SELECT current_database()").text(0, 0);
  owner.script("CREATE ROLE limited_" + name + " LOGIN; REVOKE ALL ON DATABASE " + name +
               " FROM PUBLIC; GRANT CONNECT ON DATABASE " + name + " TO limited_" + name +
               "; CREATE SCHEMA perseus AUTHORIZATION limited_" + name);
  for (int start = 0; start < 2; ++start) {
    testing::StoreExecutor executor;
    const auto store = open_postgres_store(database_ + " user=limited_" + name, executor.post());
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
  PostgresConnection(database_).script(
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
    const auto store = open_postgres_store(url, executor.post());
    ASSERT_FALSE(store.ok()) << url;
    EXPECT_EQ(store.error().code, ErrorCode::usage) << url;
    for (const char* part : {"secret", "cret", "12"}) {
      EXPECT_THAT(store.error().message, ::testing::Not(HasSubstr(part))) << url;
    }
  }
}

TEST_F(Postgres, IsRefusedWhereThereIsNone) {
  testing::StoreExecutor executor;
  const auto store = open_postgres_store("host=/no/such/folder dbname=perseus", executor.post());
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
