#include "serve/server_store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "server/postgres/postgres_store.h"
#include "server/sqlite/sqlite_file.h"
#include "server/sqlite/sqlite_store.h"

namespace perseus::cli {

std::string sqlite_file_in(const std::string& data) { return (std::filesystem::path(data) / "perseus.db").string(); }

void keep_to_ourselves() { umask(S_IRWXG | S_IRWXO); }

Result<std::unique_ptr<store::Store>> open_server_store(const std::string& data, const std::string& database,
                                                        store::Post post) {
  if (!database.empty()) return postgres::open_postgres_store(database, std::move(post));
  keep_to_ourselves();
  std::error_code problem;
  std::filesystem::create_directories(data, problem);
  if (problem) return Error{ErrorCode::cannot_write, fmt::format("{}: {}", data, problem.message())};
  if (Status local = sqlite::check_file_system(data); !local) return local.error();
  auto store = sqlite::open_sqlite_store(sqlite_file_in(data), std::move(post));
  if (store) {  // as an earlier Perseus may have left it
    for (const char* file : {"", "-wal", "-shm"}) chmod((sqlite_file_in(data) + file).c_str(), S_IRUSR | S_IWUSR);
  }
  return store;
}

}  // namespace perseus::cli
