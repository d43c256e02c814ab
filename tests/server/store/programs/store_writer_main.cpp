// A server that writes to its database until a test kills it: perseus_store_writer sqlite|postgres DATABASE.
//
// Appends events to the job "job" without end, eight in flight, and writes the sequence of each to standard output
// (8 bytes) when the store has acknowledged it. The body of an event is its sequence, and so is the blob with it. A
// program of its own: a fork of a test that has threads may wait forever for a lock that one of them held.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "server/postgres/postgres_store.h"
#include "server/sqlite/sqlite_store.h"
#include "tests/support/store_executor.h"

namespace perseus::store {
namespace {

void append_next(Store& store, std::int64_t expected) {
  Append append;
  append.job = "job";
  append.expected_sequence = expected;
  append.bodies = {fmt::format("{}", expected + 1)};
  append.index.job = "job";
  append.index.updated_s = static_cast<double>(expected + 1);
  append.blobs = {{fmt::format("blob/{}", (expected + 1) % 16), append.bodies.front()}};
  store.append(std::move(append), [sequence = expected + 1](const Result<Appended>& result) {
    if (!result || *result != Appended::committed) ::_exit(4);
    if (::write(STDOUT_FILENO, &sequence, sizeof sequence) < 0) ::_exit(5);
  });
}

[[noreturn]] void append_until_killed(Store& store, testing::StoreExecutor& executor) {
  const auto jobs = store.jobs();
  std::int64_t last = jobs->empty() ? 0 : jobs->front().last_sequence;
  for (;;) {
    for (int i = 0; i < 8; ++i) append_next(store, last++);
    executor.run_one();
  }
}

}  // namespace
}  // namespace perseus::store

int main(int argc, char** argv) {
  using namespace perseus;
  if (argc != 3) return 2;
  testing::StoreExecutor executor;
  const auto store = std::string_view(argv[1]) == "postgres" ? postgres::open_postgres_store(argv[2], executor.post())
                                                             : sqlite::open_sqlite_store(argv[2], executor.post());
  if (!store) return 3;
  if (const auto writer = (*store)->become_writer(""); !writer || !writer->is_us) return 4;
  store::append_until_killed(**store, executor);
}
