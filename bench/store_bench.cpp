// Measures the stores on this machine's disk, with flushing: acknowledged appends per second, and the time until a
// server with 10,000 stored jobs is ready. docs/storage.md has the figures. Scratch files go to TMPDIR, which should be
// on a real disk.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/postgres/postgres_store.h"
#include "server/sqlite/sqlite_store.h"
#include "tests/support/postgres_server.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/store_executor.h"

namespace perseus::bench {
namespace {

using perseus::testing::PostgresServer;
using perseus::testing::ScratchFolder;
using perseus::testing::StoreExecutor;

/// About the size of a rank's registration or report.
const std::string body =
    fmt::format(R"({{"kind":"rank_registered","at_s":1790000000.5,"host":"{}"}})", std::string(240, 'h'));

using Open = std::function<Result<std::unique_ptr<store::Store>>(store::Post)>;

/// A new database for one benchmark.
struct Sqlite {
  [[nodiscard]] Open open() const {
    return [path = folder.path("perseus.db")](store::Post post) {
      return sqlite::open_sqlite_store(path, std::move(post));
    };
  }
  ScratchFolder folder;
};

struct Postgres {
  [[nodiscard]] Open open() const {
    return [this](store::Post post) {
      auto store = postgres::open_postgres_store(database, std::move(post));
      if (store) PERSEUS_CHECK((*store)->become_writer("")->is_us, "the store before resigned");
      return store;
    };
  }
  PostgresServer server{PostgresServer::Flush::at_every_commit};
  std::string database = server.new_database();
};

store::Append to(const std::string& job, std::int64_t expected, std::size_t events = 1) {
  store::Append append;
  append.job = job;
  append.expected_sequence = expected;
  append.bodies.assign(events, body);
  append.index = {job, "registered", "a training job", 1790000000.5, 1790000000.5, 1790604800.5, 0, ""};
  return append;
}

/// This many appends of one event each are waiting at any time, each to a job of its own.
template <class Database>
void appends(benchmark::State& state) {
  const Database database;
  StoreExecutor executor;
  auto store = database.open()(executor.post());
  if (!store) return state.SkipWithError(store.error().message.c_str());
  const auto in_flight = state.range(0);
  std::vector<std::int64_t> last(in_flight, 0);
  std::int64_t answered = 0;
  bool failed = false;
  const std::function<void(std::int64_t)> add = [&](std::int64_t job) {
    (*store)->append(to(fmt::format("job{}", job), last[job]++), [&, job](const Result<store::Appended>& result) {
      failed |= !result.ok() || *result != store::Appended::committed;
      ++answered;
      add(job);
    });
  };
  for (std::int64_t job = 0; job < in_flight; ++job) add(job);
  for (auto _ : state) {
    const std::int64_t until = answered + in_flight;
    while (answered < until && !failed) executor.run_one();
  }
  if (failed) state.SkipWithError("an append failed");
  state.SetItemsProcessed(answered);
}

/// 8,192 ranks register with one job at once: from the first call to the last acknowledgment.
template <class Database>
void ranks_of_one_job(benchmark::State& state) {
  const Database database;
  StoreExecutor executor;
  auto store = database.open()(executor.post());
  if (!store) return state.SkipWithError(store.error().message.c_str());
  constexpr int kRanks = 8192;
  int jobs = 0;
  for (auto _ : state) {
    const std::string job = fmt::format("job{}", ++jobs);
    int answered = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      (*store)->append(to(job, rank), [&](const Result<store::Appended>& result) {
        answered += result.ok() && *result == store::Appended::committed;
      });
    }
    while (answered < kRanks) executor.run_one();
  }
  state.SetItemsProcessed(state.iterations() * kRanks);
}

template <class Database>
void open_and_read_index(benchmark::State& state, const Database& database, StoreExecutor& executor, std::size_t jobs) {
  for (auto _ : state) {
    auto store = database.open()(executor.post());
    if (!store) return state.SkipWithError(store.error().message.c_str());
    const auto index = (*store)->jobs();
    if (!index.ok() || index->size() != jobs) return state.SkipWithError("jobs are missing");
  }
}

/// Opens the database of 10,000 jobs with that many events each and reads the index: a server is then ready.
template <class Database>
void start_with_10000_jobs(benchmark::State& state) {
  constexpr int kJobs = 10000;
  const Database database;
  StoreExecutor executor;
  {
    auto store = database.open()(executor.post());
    if (!store) return state.SkipWithError(store.error().message.c_str());
    int answered = 0;
    for (int job = 0; job < kJobs; ++job) {
      (*store)->append(to(fmt::format("j_{:032x}", job * 2654435761U), 0, state.range(0)),
                       [&](const Result<store::Appended>&) { ++answered; });
    }
    while (answered < kJobs) executor.run_one();
  }
  open_and_read_index(state, database, executor, kJobs);
}

/// The same with 100,000 finished jobs, 8 events each, packed as the server does after a while.
template <class Database>
void start_with_100000_ended_jobs(benchmark::State& state) {
  constexpr int kJobs = 100000;
  const Database database;
  StoreExecutor executor;
  {
    auto store = database.open()(executor.post());
    if (!store) return state.SkipWithError(store.error().message.c_str());
    int answered = 0;
    for (int job = 0; job < kJobs; ++job) {
      store::Append append = to(fmt::format("j_{:032x}", job * 2654435761U), 0, 8);
      const std::string id = append.job;
      append.index.state = "finished";
      append.index.summary = R"({"ranks":8192,"ranks_registered":8192,"pipelines":64,"iteration_time_s":1.656})";
      (*store)->append(std::move(append), [&](const Result<store::Appended>&) { ++answered; });
      (*store)->pack_job(id, [&](const Result<bool>&) { ++answered; });
    }
    while (answered < 2 * kJobs) executor.run_one();
    std::int64_t bytes = 0;
    const auto jobs = (*store)->jobs();
    for (const store::JobIndexRow& row : *jobs) bytes += row.bytes;
    state.counters["log_bytes_per_job"] = static_cast<double>(bytes) / kJobs;
  }
  open_and_read_index(state, database, executor, kJobs);
}

/// Only if a PostgreSQL server can be started.
void with_postgres(const char* name, void (*run)(benchmark::State&), const std::vector<std::int64_t>& arguments) {
  if (PostgresServer::programs().empty()) return;
  auto* registered = benchmark::RegisterBenchmark(name, run)->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const std::int64_t argument : arguments) registered->Arg(argument);
}

BENCHMARK(appends<Sqlite>)->Arg(1)->Arg(64)->Arg(8192)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ranks_of_one_job<Sqlite>)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(start_with_10000_jobs<Sqlite>)->Arg(8)->Arg(70)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(start_with_100000_ended_jobs<Sqlite>)->Unit(benchmark::kMillisecond)->UseRealTime();

const bool registered = [] {
  with_postgres("appends<Postgres>", appends<Postgres>, {1, 64, 8192});
  with_postgres("ranks_of_one_job<Postgres>", ranks_of_one_job<Postgres>, {});
  with_postgres("start_with_10000_jobs<Postgres>", start_with_10000_jobs<Postgres>, {8, 70});
  with_postgres("start_with_100000_ended_jobs<Postgres>", start_with_100000_ended_jobs<Postgres>, {});
  return true;
}();

}  // namespace
}  // namespace perseus::bench
