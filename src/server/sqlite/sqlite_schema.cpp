#include "server/sqlite/sqlite_schema.h"

#include <fmt/format.h>

#include <array>

namespace perseus::sqlite {
namespace {

/// "Pers" in SQLite's header: identifies the application of the file.
constexpr int kApplicationId = 0x50657273;

/// Migrations from file version i to i + 1. Never change an entry of a released version: add one. A blob's name has a
/// checksum of its own: a lookup would miss a damaged one.
constexpr std::array kSqliteMigrations = {
    R"(CREATE TABLE jobs(job TEXT PRIMARY KEY, state TEXT NOT NULL, name TEXT NOT NULL, created_s REAL NOT NULL,
                        updated_s REAL NOT NULL, next_wake_s REAL, last_sequence INTEGER NOT NULL,
                        summary TEXT NOT NULL, bytes INTEGER NOT NULL, packed INTEGER NOT NULL,
                        crc INTEGER NOT NULL) WITHOUT ROWID;
       CREATE TABLE events(job TEXT NOT NULL, sequence INTEGER NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL,
                          PRIMARY KEY(job, sequence)) WITHOUT ROWID;
       CREATE TABLE packs(job TEXT NOT NULL, last INTEGER NOT NULL, first INTEGER NOT NULL, crc INTEGER NOT NULL,
                         bytes BLOB NOT NULL, PRIMARY KEY(job, last)) WITHOUT ROWID;
       CREATE TABLE blobs(key TEXT PRIMARY KEY, key_crc INTEGER NOT NULL, crc INTEGER NOT NULL,
                         bytes BLOB NOT NULL) WITHOUT ROWID;
       CREATE TABLE holds(holder TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY(holder, key)) WITHOUT ROWID;
       CREATE INDEX holds_key ON holds(key);
       CREATE TABLE unused(key TEXT PRIMARY KEY, since_s REAL NOT NULL) WITHOUT ROWID;
       CREATE TABLE tokens(hash TEXT PRIMARY KEY, role TEXT NOT NULL, job TEXT NOT NULL, name TEXT NOT NULL,
                          created_s REAL NOT NULL, expires_s REAL NOT NULL, team TEXT NOT NULL,
                          crc INTEGER NOT NULL) WITHOUT ROWID;
       CREATE TABLE history(job TEXT NOT NULL, step_s INTEGER NOT NULL, start_s INTEGER NOT NULL, source TEXT NOT NULL,
                            iterations INTEGER NOT NULL, time_s REAL NOT NULL, least_s REAL NOT NULL,
                            most_s REAL NOT NULL, energy_iterations INTEGER NOT NULL, energy_j REAL NOT NULL,
                            planned_iterations INTEGER NOT NULL, planned_s REAL NOT NULL, planned_j REAL NOT NULL,
                            straggler_iterations INTEGER NOT NULL, first_version INTEGER NOT NULL,
                            last_version INTEGER NOT NULL, crc INTEGER NOT NULL,
                            PRIMARY KEY(job, step_s, start_s, source)) WITHOUT ROWID;
       -- Sums of a domain's readings, as site_row.h writes them.
       CREATE TABLE site_history(domain TEXT NOT NULL, step_s INTEGER NOT NULL, start_s INTEGER NOT NULL,
                                 source TEXT NOT NULL, figures TEXT NOT NULL, crc INTEGER NOT NULL,
                                 PRIMARY KEY(step_s, start_s, domain, source)) WITHOUT ROWID;)",
};
constexpr int kSqliteVersion = static_cast<int>(kSqliteMigrations.size());

void configure(SQLite::Database& database) {
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
}

/// Checks the application of the file and its integrity.
std::optional<Error> check(const std::string& path, SQLite::Database& database) {
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  const bool is_new = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  if (!is_new && database.execAndGet("PRAGMA application_id").getInt() != kApplicationId) {
    return Error{ErrorCode::invalid_input, path + ": a SQLite database of another program"};
  }
  if (version > kSqliteVersion) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: written by a later Perseus (schema {}, this one knows up to {})", path, version,
                             kSqliteVersion)};
  }
  if (const std::string found = database.execAndGet("PRAGMA quick_check(1)").getString(); found != "ok") {
    return Error{ErrorCode::invalid_input, fmt::format("{}: damaged ({}); restore a backup", path, found)};
  }
  return std::nullopt;
}

}  // namespace

bool is_sqlite_store(SQLite::Database& database) {
  return database.execAndGet("PRAGMA application_id").getInt() == kApplicationId;
}

std::optional<Error> check_and_migrate(const std::string& path, SQLite::Database& database) {
  if (auto wrong = check(path, database)) return wrong;
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  const bool is_new = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  if (is_new) database.exec("PRAGMA auto_vacuum = INCREMENTAL");  // only possible before the first table
  configure(database);
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (int i = version; i < kSqliteVersion; ++i) database.exec(kSqliteMigrations[i]);
  database.exec(fmt::format("PRAGMA user_version = {}; PRAGMA application_id = {}", kSqliteVersion, kApplicationId));
  transaction.commit();
  database.exec("PRAGMA temp_store = MEMORY");
  return std::nullopt;
}

std::optional<Error> check_present_version(const std::string& path, SQLite::Database& database) {
  if (auto wrong = check(path, database)) return wrong;
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  if (version == kSqliteVersion) return std::nullopt;
  return Error{ErrorCode::cannot_write, fmt::format("{}: schema {}; it will be upgraded to {} when it can be written",
                                                    path, version, kSqliteVersion)};
}

}  // namespace perseus::sqlite
