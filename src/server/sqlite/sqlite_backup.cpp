#include "server/sqlite/sqlite_backup.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/owned_fd.h"
#include "server/sqlite/sqlite_schema.h"

namespace perseus::sqlite {
namespace {

/// A power failure after this leaves the file, or folder, as it is now.
bool flush_to_disk(const std::string& path) {
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() && ::fsync(file.get()) == 0;
}

}  // namespace

Status back_up_sqlite(const std::string& path, const std::string& to) {
  const auto cannot = [&](std::string_view why) {
    return Error{ErrorCode::cannot_write, fmt::format("{}: cannot be written: {}", to, why)};
  };
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return Error{ErrorCode::not_found, path + ": does not exist"};
  if (std::filesystem::exists(to, failure)) return cannot("it exists already, and a backup goes into a new file");
  const std::string partial = to + ".partial";
  std::filesystem::remove(partial, failure);
  try {
    SQLite::Database database(path, SQLite::OPEN_READONLY, 5000);
    if (!is_sqlite_store(database)) { return Error{ErrorCode::invalid_input, path + ": not a database of Perseus"}; }
    SQLite::Statement copy(database, "VACUUM INTO ?");
    copy.bind(1, partial);
    copy.exec();
  } catch (const SQLite::Exception& exception) {
    std::filesystem::remove(partial, failure);
    return cannot(exception.what());
  }
  const std::string folder = std::filesystem::absolute(to, failure).parent_path().string();
  if (!flush_to_disk(partial) || std::rename(partial.c_str(), to.c_str()) != 0 || !flush_to_disk(folder)) {
    const Error error = cannot(std::strerror(errno));
    std::filesystem::remove(partial, failure);
    return error;
  }
  return Ok{};
}

}  // namespace perseus::sqlite
