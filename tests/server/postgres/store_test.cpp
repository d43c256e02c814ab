// The PostgreSQL store keeps the promises of every store.
#include "server/postgres/postgres_store.h"
#include "tests/server/postgres/shared_server.h"
#include "tests/support/any_store.h"

namespace perseus::testing {
namespace {

/// One folder per test, and here one database per folder: the same one when the test opens the store again.
Result<std::unique_ptr<store::Store>> open_postgres(const std::string& folder, store::Post post) {
  static std::string database_of_folder, database;
  if (folder != database_of_folder) {
    database_of_folder = folder;
    database = shared_server().new_database();
  }
  auto opened = postgres::open_postgres_store(database, std::move(post));
  if (opened) PERSEUS_CHECK((*opened)->become_writer("")->is_us, "the store before resigned");
  return opened;
}

std::vector<Kind> kinds() {
  return PostgresServer::programs().empty() ? std::vector<Kind>{} : std::vector<Kind>{{"postgres", open_postgres}};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AnyStore);
INSTANTIATE_TEST_SUITE_P(Kinds, AnyStore, ::testing::ValuesIn(kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace perseus::testing
