#include "server_store.h"

#include <fmt/format.h>

#include <filesystem>

#include "store/postgres_store.h"
#include "store/sqlite_store.h"

namespace perseus {

std::string sqlite_file_in(const std::string& data) { return (std::filesystem::path(data) / "perseus.db").string(); }

Result<std::unique_ptr<Store>> open_server_store(const std::string& data, const std::string& database, Post post) {
  if (!database.empty()) return open_postgres_store(database, std::move(post));
  std::error_code problem;
  std::filesystem::create_directories(data, problem);
  if (problem) return Error{ErrorCode::cannot_write, fmt::format("{}: {}", data, problem.message())};
  return open_sqlite_store(sqlite_file_in(data), std::move(post));
}

}  // namespace perseus
