// Random damage to the database file: the store returns what was written, or an error.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "server/sqlite/sqlite_store.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/store_executor.h"

namespace perseus::store {
namespace {

/// The data that the test wrote to a store.
struct Written {
  std::map<std::string, std::vector<std::string>> jobs;
  std::map<std::string, std::string> blobs;
  std::vector<TokenRow> tokens;
};

Written write_database(const std::string& path) {
  testing::StoreExecutor executor;
  const auto store = *sqlite::open_sqlite_store(path, executor.post());
  std::mt19937 dice(7);  // NOLINT(bugprone-random-generator-seed)
  Written written;
  for (int j = 0; j < 30; ++j) {
    Append append;
    append.job = fmt::format("j_{:08x}", dice());
    for (int e = 0; e < 20; ++e) {
      append.bodies.push_back(fmt::format(R"({{"kind":"rank_registered","rank":{},"host":"node-{:x}"}})", e, dice()));
    }
    append.index = {append.job, "deployed", "name", 1, 2, 3.5, 0, R"({"ranks":20})"};
    const std::string key = fmt::format("input/{:08x}", dice());
    append.blobs = {{key, std::string(j % 3 == 0 ? 9000 : 90, static_cast<char>('a' + j % 26))}};
    append.holds = {key};
    written.jobs[append.job] = append.bodies;
    written.blobs[key] = append.blobs.front().bytes;
    (void)executor.outcome<Appended>([&](auto done) { store->append(append, done); });
    if (j % 3 == 1) (void)executor.outcome<bool>([&](auto done) { store->pack_job(append.job, done); });
  }
  for (int t = 0; t < 5; ++t) {
    written.tokens.push_back({fmt::format("hash{}", t), t == 0 ? "infrastructure" : "job", "", "name", 1, 0, "team"});
    (void)executor.outcome<Ok>([&](auto done) { store->put_token(written.tokens.back(), done); });
  }
  return written;
}

struct Found {
  int right = 0, refused = 0;
  std::vector<std::string> wrong;
};

void read_all(Store& store, const Written& written, Found& found) {
  const auto one = [&](bool refused, bool right, const std::string& what) {
    if (refused) ++found.refused;
    if (!refused && right) ++found.right;
    if (!refused && !right) found.wrong.push_back(what);
  };
  const auto index = store.jobs();
  std::map<std::string, JobIndexRow> rows;
  if (index) {
    for (const JobIndexRow& row : *index) rows[row.job] = row;
  }
  for (const auto& [job, bodies] : written.jobs) {
    const auto row = rows.find(job);
    const bool listed = row != rows.end() && !row->second.damaged;
    const bool right_row = listed && row->second.state == "deployed" && row->second.name == "name" &&
                           row->second.last_sequence == 20 && row->second.summary == R"({"ranks":20})" &&
                           row->second.next_wake_s == 3.5;
    one(!index || !listed, right_row, "the row of " + job);
    const auto events = store.read(job, 0);
    std::vector<std::string> read;
    if (events) {
      for (const StoredEvent& event : *events) read.push_back(event.body);
    }
    one(!events, read == bodies, fmt::format("job {}: {} events", job, read.size()));
  }
  for (const auto& [key, bytes] : written.blobs) {
    const auto blob = store.blob(key);
    one(!blob, blob && *blob && **blob == bytes, key);
  }
  const auto tokens = store.tokens();
  one(!tokens, tokens && *tokens == written.tokens, "tokens");
}

TEST(Damage, IsNeverReadAsContent) {
  const testing::ScratchFolder folder;
  const std::string whole = folder.path("whole.db"), path = folder.path("perseus.db");
  const Written written = write_database(whole);
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(whole));
  constexpr std::uint64_t seed = 20261123;
  int files_refused = 0, jobs_refused_alone = 0;
  std::vector<std::string> wrong;
  for (int round = 0; round < 600; ++round) {
    std::mt19937 dice(static_cast<std::uint32_t>(seed + round));  // NOLINT(bugprone-random-generator-seed)
    std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
    for (const char* beside : {"-wal", "-shm"}) std::filesystem::remove(path + beside);
    const int bytes = std::uniform_int_distribution(1, 3)(dice);
    for (int i = 0; i < bytes; ++i) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      const auto at = std::uniform_int_distribution<std::int64_t>(0, size - 1)(dice);
      file.seekg(at);
      const int was = file.get();
      file.seekp(at);
      file.put(static_cast<char>(was ^ std::uniform_int_distribution(1, 255)(dice)));
    }
    testing::StoreExecutor executor;
    const auto store = sqlite::open_sqlite_store(path, executor.post());
    if (!store) {
      ++files_refused;
      EXPECT_EQ(store.error().code, ErrorCode::invalid_input) << round << ": " << store.error().message;
      continue;
    }
    Found found;
    read_all(**store, written, found);
    if (found.refused > 0 && found.right > found.refused) ++jobs_refused_alone;
    for (const std::string& what : found.wrong) wrong.push_back(fmt::format("round {}: {}", round, what));
  }
  for (const std::string& what : wrong) ADD_FAILURE() << what;
  RecordProperty("files_refused", files_refused);
  RecordProperty("rows_refused", jobs_refused_alone);
  std::printf("of 600 damaged files %d were refused, of %d a part\n", files_refused, jobs_refused_alone);
  EXPECT_GT(jobs_refused_alone, 100);
}

}  // namespace
}  // namespace perseus::store
