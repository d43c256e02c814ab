// The in-memory store and the SQLite store keep the promises of every store.
#include "server/sqlite/sqlite_store.h"
#include "tests/support/any_store.h"
#include "tests/support/test_store.h"

namespace perseus::testing {
namespace {

Result<std::unique_ptr<store::Store>> open_memory(const std::string&, store::Post post) {
  return std::unique_ptr<store::Store>(std::make_unique<TestStore>(std::move(post)));
}
Result<std::unique_ptr<store::Store>> open_sqlite(const std::string& folder, store::Post post) {
  return sqlite::open_sqlite_store(folder + "/perseus.db", std::move(post));
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyStore, ::testing::Values(Kind{"memory", open_memory}, Kind{"sqlite", open_sqlite}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace perseus::testing
