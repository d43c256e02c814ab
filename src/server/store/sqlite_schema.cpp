#include "server/store/sqlite_schema.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "server/store/checksum.h"

namespace perseus::store {
namespace {

/// "Pers" in SQLite's header: identifies the application of the file.
constexpr int kApplicationId = 0x50657273;

/// Migrations from file version i to i + 1. Never change an entry: add one.
constexpr std::array kSqliteMigrations = {
    R"(CREATE TABLE job(job TEXT PRIMARY KEY, state TEXT NOT NULL, name TEXT NOT NULL, created_s REAL NOT NULL,
                        updated_s REAL NOT NULL, next_wake_s REAL, last_sequence INTEGER NOT NULL) WITHOUT ROWID;
       CREATE TABLE event(job TEXT NOT NULL, sequence INTEGER NOT NULL, body TEXT NOT NULL,
                          PRIMARY KEY(job, sequence)) WITHOUT ROWID;
       CREATE TABLE blob(key TEXT PRIMARY KEY, bytes BLOB NOT NULL);
       CREATE TABLE claim(work TEXT PRIMARY KEY, owner TEXT NOT NULL, until_s REAL NOT NULL) WITHOUT ROWID;
       CREATE TABLE token(hash TEXT PRIMARY KEY, role TEXT NOT NULL, job TEXT NOT NULL, name TEXT NOT NULL,
                          created_s REAL NOT NULL) WITHOUT ROWID;)",
    R"(ALTER TABLE job ADD COLUMN summary TEXT NOT NULL DEFAULT '';
       DROP TABLE claim;)",
    R"(ALTER TABLE token ADD COLUMN expires_s REAL NOT NULL DEFAULT 0;
       ALTER TABLE token ADD COLUMN team TEXT NOT NULL DEFAULT '';)",
    // Checksums, packed logs, and the record of used blobs. A name has a checksum of its own: see DamagedNames.
    R"(ALTER TABLE job ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE job ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE job ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE event ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE token ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE blob RENAME TO blob_before;
       CREATE TABLE blob(key TEXT PRIMARY KEY, key_crc INTEGER NOT NULL, crc INTEGER NOT NULL,
                         bytes BLOB NOT NULL) WITHOUT ROWID;
       CREATE TABLE pack(job TEXT NOT NULL, last INTEGER NOT NULL, first INTEGER NOT NULL, crc INTEGER NOT NULL,
                         bytes BLOB NOT NULL, PRIMARY KEY(job, last)) WITHOUT ROWID;
       CREATE TABLE holds(holder TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY(holder, key)) WITHOUT ROWID;
       CREATE INDEX holds_key ON holds(key);
       CREATE TABLE unused(key TEXT PRIMARY KEY, since_s REAL NOT NULL) WITHOUT ROWID;
       UPDATE event SET crc = checksum(job, sequence, body);
       UPDATE job SET bytes = (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM event WHERE event.job = job.job);
       UPDATE job SET crc = checksum(job, state, name, created_s, updated_s, next_wake_s, last_sequence, summary, bytes,
                                     packed);
       UPDATE token SET crc = checksum(hash, role, job, name, created_s, expires_s, team);
       INSERT INTO blob SELECT key, checksum(key), checksum(key, CAST(bytes AS TEXT)), bytes FROM blob_before;
       DROP TABLE blob_before;
       -- What holds what, from bodies as versions 1 to 3 wrote them: the key is 32 characters after "input":".
       INSERT OR IGNORE INTO holds
         SELECT 'job/' || job, kind || substr(body, instr(body, '"input":"') + 9, 32)
         FROM event, (SELECT 'input/' AS kind UNION SELECT 'frontier/')
         WHERE body LIKE '{"kind":"profile_known"%' AND instr(body, '"input":"') > 0;
       INSERT OR IGNORE INTO holds
         SELECT key, kind || substr(text, max(1, instr(text, '"input":"') + 9 * (instr(text, '"input":"') > 0)), 32)
         FROM (SELECT key, CAST(bytes AS TEXT) AS text FROM blob WHERE key LIKE 'known/%'),
              (SELECT 'input/' AS kind UNION SELECT 'frontier/');
       INSERT OR IGNORE INTO holds
         SELECT 'job/' || job.job, key FROM blob, job
         WHERE key LIKE 'known/%' AND instr(CAST(blob.bytes AS TEXT), '"job":"' || job.job || '"') > 0;)",
    R"(CREATE TABLE history(job TEXT NOT NULL, step_s INTEGER NOT NULL, start_s INTEGER NOT NULL, source TEXT NOT NULL,
                            iterations INTEGER NOT NULL, time_s REAL NOT NULL, least_s REAL NOT NULL,
                            most_s REAL NOT NULL, energy_iterations INTEGER NOT NULL, energy_j REAL NOT NULL,
                            planned_iterations INTEGER NOT NULL, planned_s REAL NOT NULL, planned_j REAL NOT NULL,
                            straggler_iterations INTEGER NOT NULL, first_version INTEGER NOT NULL,
                            last_version INTEGER NOT NULL, crc INTEGER NOT NULL,
                            PRIMARY KEY(job, step_s, start_s, source)) WITHOUT ROWID;)",
    // Sums of a domain's readings, as site_row.h writes them.
    R"(CREATE TABLE site_history(domain TEXT NOT NULL, step_s INTEGER NOT NULL, start_s INTEGER NOT NULL,
                                 source TEXT NOT NULL, figures TEXT NOT NULL, crc INTEGER NOT NULL,
                                 PRIMARY KEY(step_s, start_s, domain, source)) WITHOUT ROWID;)",
};
constexpr int kSqliteVersion = static_cast<int>(kSqliteMigrations.size());

/// checksum(value, ...) for migrations: equals the Checksum of the same values.
void checksum_in_sql(sqlite3_context* context, int count, sqlite3_value** values) {
  Checksum checksum;
  for (int i = 0; i < count; ++i) {
    sqlite3_value* const value = values[i];
    switch (sqlite3_value_type(value)) {
      case SQLITE_INTEGER:
        checksum.add(static_cast<std::int64_t>(sqlite3_value_int64(value)));
        break;
      case SQLITE_FLOAT:
        checksum.add(sqlite3_value_double(value));
        break;
      case SQLITE_NULL:
        checksum.add_null();
        break;
      default: {
        const void* const bytes = sqlite3_value_blob(value);  // must precede the request for its size
        const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
        checksum.add(std::string_view(static_cast<const char*>(bytes), size));
      }
    }
  }
  sqlite3_result_int64(context, checksum.value());
}

void configure(SQLite::Database& database) {
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  sqlite3_create_function_v2(database.getHandle(), "checksum", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr,
                             checksum_in_sql, nullptr, nullptr, nullptr);
}

/// The lock excludes other servers, so a claim may end with its server and needs no disk flush.
void add_claims(SQLite::Database& database) {
  database.exec("PRAGMA temp_store = MEMORY");
  database.exec(
      "CREATE TEMP TABLE claim(work TEXT PRIMARY KEY, owner TEXT NOT NULL, until_s REAL NOT NULL) WITHOUT ROWID");
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
  add_claims(database);
  return std::nullopt;
}

std::optional<Error> check_present_version(const std::string& path, SQLite::Database& database) {
  if (auto wrong = check(path, database)) return wrong;
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  if (version == kSqliteVersion) return std::nullopt;
  return Error{ErrorCode::cannot_write, fmt::format("{}: schema {}; it will be upgraded to {} when it can be written",
                                                    path, version, kSqliteVersion)};
}

}  // namespace perseus::store
