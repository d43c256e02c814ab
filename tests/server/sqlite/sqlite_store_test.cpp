// Failures of the database file: a kill at any moment, a full disk, a damaged, foreign or locked database.
#include "server/sqlite/sqlite_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>

#include "server/sqlite/sqlite_backup.h"
#include "server/sqlite/sqlite_file.h"
#include "tests/support/eventually.h"
#include "tests/support/killed_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/store_executor.h"

namespace perseus::sqlite {
namespace {

using ::testing::HasSubstr;

class SqliteFile : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.path("perseus.db"); }

  std::unique_ptr<store::Store> open(const SqliteOptions& options = {}) {
    auto store = open_sqlite_store(path(), executor_.post(), options);
    PERSEUS_CHECK(store.ok(), store.ok() ? "" : store.error().message.c_str());
    return std::move(*store);
  }
  [[nodiscard]] Error refusal(const std::string& of) {
    const auto store = open_sqlite_store(of, executor_.post());
    return store.ok() ? Error{ErrorCode::internal, "opened"} : store.error();
  }
  Result<store::Appended> append(store::Store& store, const std::string& job, std::int64_t expected, std::string body) {
    store::Append append;
    append.job = job;
    append.expected_sequence = expected;
    append.bodies = {std::move(body)};
    append.index.job = job;
    return executor_.outcome<store::Appended>([&](auto done) { store.append(std::move(append), done); });
  }
  /// Writes until the store refuses, and returns its error; `last` counts the successful writes. A thousand writes
  /// are enough.
  Result<store::Appended> append_until_refused(store::Store& store, std::int64_t& last) {
    Result<store::Appended> result = store::Appended::committed;
    while (result.ok() && last < 1000) {
      result = append(store, "job", last, std::string(8000, 'x'));
      last += result.ok();
    }
    return result;
  }

  testing::ScratchFolder folder_;
  testing::StoreExecutor executor_;
};

TEST_F(SqliteFile, LosesNothingAcknowledgedWhenKilledAtAnyMoment) {
  std::mt19937 dice(20261121);  // NOLINT(bugprone-random-generator-seed): the same moments every time
  std::int64_t acknowledged = 0;
  for (int kill = 0; kill < 200; ++kill) {
    // The moment of the kill: after this many acknowledgments, wherever the writer is then.
    const int until = std::uniform_int_distribution(1, 60)(dice);
    acknowledged = testing::last_acknowledged_before_the_kill("sqlite", path(), until, acknowledged);

    const auto store = open();
    const auto events = store->read("job", 0);
    ASSERT_TRUE(events.ok());
    // The file may hold more events than were acknowledged, never fewer, and no partial event.
    ASSERT_GE(static_cast<std::int64_t>(events->size()), acknowledged);
    acknowledged = static_cast<std::int64_t>(events->size());
    for (std::int64_t i = 0; i < acknowledged; ++i) {
      ASSERT_EQ((*events)[i].sequence, i + 1);
      ASSERT_EQ((*events)[i].body, fmt::format("{}", i + 1));
    }
    const auto rows = store->jobs();
    ASSERT_EQ(rows->front().last_sequence, acknowledged);
    ASSERT_EQ(rows->front().updated_s, static_cast<double>(acknowledged));
    ASSERT_EQ(**store->blob(fmt::format("blob/{}", acknowledged % 16)), events->back().body);
  }
}

TEST_F(SqliteFile, AFullDiskRefusesWholeWritesAndRecovers) {
  auto store = open({.max_pages = 40});
  std::int64_t last = 0;
  const Result<store::Appended> result = append_until_refused(*store, last);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::unavailable);
  EXPECT_THAT(result.error().message, ::testing::Not(HasSubstr(path())));  // clients read it
  EXPECT_THAT(result.error().message, HasSubstr("full"));
  EXPECT_EQ(store->read("job", 0)->size(), static_cast<std::size_t>(last));
  EXPECT_EQ(store->jobs()->front().last_sequence, last);
  // Some data is deleted, and the same store continues.
  EXPECT_TRUE(executor_.outcome<Ok>([&](auto done) { store->remove_job("job", done); }).ok());
  EXPECT_TRUE(append(*store, "job", 0, std::string(8000, 'x')).ok());
}

TEST_F(SqliteFile, SurvivesBeingOpenedAgain) {
  ASSERT_TRUE(append(*open(), "job", 0, "{}").ok());
  EXPECT_EQ(open()->read("job", 0)->size(), 1U);
}

TEST_F(SqliteFile, MovesItsLogIntoTheFileWhileItIsWrittenTo) {
  auto store = open();
  constexpr std::uintmax_t written = 5 << 20;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(append(*store, "job", i, std::string(written / 50, 'x')).ok());
  std::int64_t last = 50;
  // Another thread moves it, which on a busy machine may not get a core, or the disk, for seconds.
  ASSERT_TRUE(testing::eventually([&] {
    EXPECT_TRUE(append(*store, "job", last++, "{}").ok());
    return std::filesystem::file_size(path()) >= written;
  }));
  store.reset();
  EXPECT_EQ(open()->read("job", 0)->size(), static_cast<std::size_t>(last));
}

TEST_F(SqliteFile, IsReadUnderAnyName) {
  for (const char* name : {"plain.db", "what?.db", "a#b.db", "100%25 \xc3\xa4.db"}) {
    const std::string file = folder_.path(name);
    ASSERT_TRUE(connect_sqlite(file, {}).ok()) << name;
    EXPECT_TRUE(connect_sqlite_read_only(file).ok()) << name;
  }
}

TEST_F(SqliteFile, IsRefusedToASecondServer) {
  const auto store = open();
  const Error error = refusal(path());
  EXPECT_EQ(error.code, ErrorCode::conflict);
  EXPECT_THAT(error.message, HasSubstr("in use by another server"));
}

TEST_F(SqliteFile, IsRefusedWhenItIsNoDatabase) {
  std::ofstream(path()) << std::string(5000, 'n');
  const Error error = refusal(path());
  EXPECT_EQ(error.code, ErrorCode::invalid_input);
  EXPECT_THAT(error.message, HasSubstr(path() + ": no SQLite database, or a damaged one"));
  EXPECT_EQ(std::filesystem::file_size(path()), 5000U);
}

TEST_F(SqliteFile, IsRefusedWhenItIsDamaged) {
  {
    const auto store = open();
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(append(*store, "job", i, std::string(4000, 'x')).ok());
  }
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3 * 4096);
    file << std::string(30000, '\x5a');
  }
  const Error error = refusal(path());
  EXPECT_EQ(error.code, ErrorCode::invalid_input);
  EXPECT_THAT(error.message, HasSubstr("damaged"));
}

TEST_F(SqliteFile, IsRefusedWhenItBelongsToAnotherProgram) {
  SQLite::Database(path(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE t(x)");
  EXPECT_THAT(refusal(path()).message, HasSubstr("a SQLite database of another program"));
}

TEST_F(SqliteFile, IsRefusedWhenALaterVersionWroteIt) {
  open();
  SQLite::Database(path(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
  EXPECT_THAT(refusal(path()).message, HasSubstr("written by a later Perseus (schema 99, this one knows up to 1)"));
}

TEST_F(SqliteFile, IsRefusedWhereNothingCanBeCreated) {
  const Error error = refusal(folder_.path("no/such/folder/perseus.db"));
  EXPECT_EQ(error.code, ErrorCode::cannot_write);
  EXPECT_THAT(error.message, HasSubstr("no/such/folder"));
}

TEST_F(SqliteFile, IsBackedUpWhileInUse) {
  const auto store = open();
  ASSERT_TRUE(append(*store, "job", 0, "{1}").ok());
  const std::string copy = folder_.path("backup.db");
  ASSERT_TRUE(store->backup(copy).ok());
  ASSERT_TRUE(append(*store, "job", 1, "{2}").ok());
  const Status again = store->backup(copy);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, HasSubstr("exists already"));
  EXPECT_FALSE(store->backup(folder_.path("no/such/folder/x.db")).ok());

  const auto restored = open_sqlite_store(copy, executor_.post());
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ((*restored)->read("job", 0)->size(), 1U);
}

TEST_F(SqliteFile, IsBackedUpFromOutsideWhileAServerHasIt) {
  const auto store = open();
  ASSERT_TRUE(append(*store, "job", 0, "{1}").ok());
  const std::string copy = folder_.path("backup.db");
  const Status done = back_up_sqlite(path(), copy);
  ASSERT_TRUE(done.ok()) << done.error().message;
  const auto restored = open_sqlite_store(copy, executor_.post());
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ((*restored)->read("job", 0)->size(), 1U);

  EXPECT_EQ(back_up_sqlite(folder_.path("none.db"), folder_.path("other.db")).error().code, ErrorCode::not_found);
  SQLite::Database(folder_.path("foreign.db"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE t(x)");
  EXPECT_EQ(back_up_sqlite(folder_.path("foreign.db"), folder_.path("other.db")).error().code,
            ErrorCode::invalid_input);
  EXPECT_THAT(folder_.names(), ::testing::Not(::testing::Contains("other.db")));
}

/// Limits the size of files that this process writes, for the lifetime of this object; a write beyond it fails as on
/// a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(SqliteFile, AFailedWriteIsRefusedWholeAndTheNextOneRetries) {
  auto store = open();
  std::int64_t last = 0;
  {
    const FileSizeLimit limit(300000);
    const Result<store::Appended> result = append_until_refused(*store, last);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::unavailable);
    EXPECT_GT(last, 3);
    EXPECT_FALSE(append(*store, "job", last, std::string(8000, 'x')).ok());
    EXPECT_EQ(store->read("job", 0)->size(), static_cast<std::size_t>(last));
  }
  EXPECT_EQ(*append(*store, "job", last, "{after}"), store::Appended::committed);
  store.reset();
  store = open();  // checks the file
  EXPECT_EQ(store->read("job", 0)->size(), static_cast<std::size_t>(last) + 1);
}

}  // namespace
}  // namespace perseus::sqlite
