// Measures the history of jobs in a store: writing a minute of all jobs, reading one job's day and year, the sum over
// the cluster, aging, and bytes per row.
//
// usage: history_report JOBS [MINUTES [HOURS [postgres]]]
// Each job has MINUTES (default 1440, a day) and HOURS (default 8760, a year). Scratch files go to TMPDIR, which should
// be on a real disk. Prints a table in Markdown.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
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

using std::chrono::steady_clock;
using store::kHour_s, store::kMinute_s;

constexpr std::int64_t kNow_s = 1'800'000'000 / kHour_s * kHour_s;
constexpr std::size_t kRowsAtOnce = 500;  // as the server writes them

std::string id_of(int job) { return fmt::format("j_{:032x}", job * 2654435761U); }

class Report {
 public:
  Report(store::Store& store, testing::StoreExecutor& executor, int jobs)
      : store_(store), executor_(executor), jobs_(jobs) {}

  void add_jobs() {
    int answered = 0;
    for (int job = 0; job < jobs_; ++job) {
      store::Append append;
      append.job = id_of(job);
      append.bodies = {R"({"kind":"job_registered","at_s":1790000000.5})"};
      append.index = {append.job, "deployed", "a training job", 1790000000.5, 1790000000.5, 1790604800.5, 0, ""};
      store_.append(std::move(append), [&](const Result<store::Appended>&) { ++answered; });
    }
    while (answered < jobs_) executor_.run_one();
  }

  /// Writes that minute or hour of all jobs, as the server does. Returns the number of rows.
  void write(std::int64_t step_s, std::int64_t start_s) {
    std::vector<store::HistoryRow> rows;
    for (int job = 0; job < jobs_; ++job) {
      rows.push_back({id_of(job), step_s, start_s, step_s == kMinute_s ? "0123456789abcdef" : "", figures()});
      if (rows.size() < kRowsAtOnce && job + 1 < jobs_) continue;
      const auto written =
          executor_.outcome<Ok>([&](auto done) { store_.write_history(std::exchange(rows, {}), std::move(done)); });
      PERSEUS_CHECK(written.ok(), "written");
    }
  }
  double time(const std::function<void()>& work) {
    const auto begin = steady_clock::now();
    work();
    return std::chrono::duration<double>(steady_clock::now() - begin).count();
  }
  std::size_t read(int job, std::int64_t from_s) { return store_.history(id_of(job), from_s, kNow_s)->size(); }
  [[nodiscard]] std::int64_t bytes() { return store_.size_bytes().value(); }
  void age(std::int64_t minutes_before_s) {
    const auto again = [&] {
      return executor_.outcome<bool>([&](auto done) {
        store_.age_history({minutes_before_s, kNow_s - 366 * 24 * kHour_s}, std::move(done));
      });
    };
    for (auto more = again(); more.value();) more = again();
  }

 private:
  static store::HistoryFigures figures() { return {40, 60.5, 1.4, 1.6, 40, 12345.5, 40, 58.5, 12000.5, 0, 3, 4}; }
  store::Store& store_;
  testing::StoreExecutor& executor_;
  int jobs_;
};

void line(const std::string& what, const std::string& value) { fmt::print("| {} | {} |\n", what, value); }

void measure(store::Store& store, testing::StoreExecutor& executor, int jobs, int minutes, int hours) {
  Report report(store, executor, jobs);
  report.add_jobs();
  const std::int64_t empty = report.bytes();
  fmt::print("| {} jobs, each {} minutes and {} hours | |\n| --- | --- |\n", jobs, minutes, hours);
  const double hours_s = report.time([&] {
    for (int hour = hours; hour > 0; --hour) report.write(kHour_s, kNow_s - 24 * kHour_s - hour * kHour_s);
  });
  const double minutes_s = report.time([&] {
    for (int minute = minutes; minute > 1; --minute) report.write(kMinute_s, kNow_s - minute * kMinute_s);
  });
  const double last_s = report.time([&] { report.write(kMinute_s, kNow_s - kMinute_s); });
  const double rows = static_cast<double>(jobs) * (minutes + hours);
  line("rows written in all", fmt::format("{:.0f} in {:.1f} s", rows, hours_s + minutes_s + last_s));
  line("a minute of all jobs, written with these rows in the database", fmt::format("{:.3f} s", last_s));
  line("bytes of the database per row, write-ahead log included",
       fmt::format("{:.0f}", static_cast<double>(report.bytes() - empty) / rows));
  std::size_t day_rows = 0, year_rows = 0;
  const int reads = std::min(jobs, 20);
  const double day_s = report.time([&] {
    for (int job = 0; job < reads; ++job) day_rows += report.read(job, kNow_s - 24 * kHour_s);
  });
  const double year_s = report.time([&] {
    for (int job = 0; job < reads; ++job) year_rows += report.read(job, kNow_s - 366 * 24 * kHour_s);
  });
  line(fmt::format("one job's last day, {} rows", day_rows / reads), fmt::format("{:.1f} ms", 1e3 * day_s / reads));
  line(fmt::format("one job's year, {} rows", year_rows / reads), fmt::format("{:.1f} ms", 1e3 * year_s / reads));
  const double hour_s = report.time([&] {
    for (int job = 0; job < jobs; ++job) day_rows += report.read(job, kNow_s - kHour_s);
  });
  line("the last hour of all jobs, job by job", fmt::format("{:.2f} s", hour_s));
  line("space of each job's history (history_bytes)",
       fmt::format("{:.1f} ms", 1e3 * report.time([&] { (void)store.history_bytes(); })));
  line("an hour of minutes of all jobs becomes hours",
       fmt::format("{:.2f} s", report.time([&] { report.age(kNow_s - (minutes / 60 - 1) * kHour_s); })));
}

}  // namespace
}  // namespace perseus::bench

int main(int count, char** arguments) {
  using namespace perseus;
  if (count < 2 || count > 5) {
    fmt::print(stderr, "usage: history_report JOBS [MINUTES [HOURS [postgres]]]\n");
    return 64;
  }
  const int jobs = std::atoi(arguments[1]);
  const int minutes = count > 2 ? std::atoi(arguments[2]) : 1440, hours = count > 3 ? std::atoi(arguments[3]) : 8760;
  testing::StoreExecutor executor;
  if (count > 4) {
    testing::PostgresServer server{testing::PostgresServer::Flush::at_every_commit};
    auto store = postgres::open_postgres_store(server.new_database(), executor.post());
    PERSEUS_CHECK(store.ok() && (*store)->become_writer("")->is_us, "the database opens");
    bench::measure(**store, executor, jobs, minutes, hours);
    return 0;
  }
  const testing::ScratchFolder folder;
  auto store = sqlite::open_sqlite_store(folder.path("perseus.db"), executor.post());
  PERSEUS_CHECK(store.ok(), "the database opens");
  bench::measure(**store, executor, jobs, minutes, hours);
  return 0;
}
