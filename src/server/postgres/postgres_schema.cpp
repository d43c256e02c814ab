#include "server/postgres/postgres_schema.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace perseus::postgres {
namespace {

/// Migrations from schema version i to i + 1. Never change an entry of a released version: add one. Texts are ordered
/// by their bytes, as everywhere else.
constexpr std::array kPostgresMigrations = {
    R"(CREATE TABLE jobs(job text COLLATE "C" PRIMARY KEY, state text NOT NULL, name text NOT NULL,
                         created_s double precision NOT NULL, updated_s double precision NOT NULL,
                         next_wake_s double precision, last_sequence bigint NOT NULL,
                         summary text NOT NULL DEFAULT '', bytes bigint NOT NULL DEFAULT 0,
                         packed bigint NOT NULL DEFAULT 0, crc bigint NOT NULL DEFAULT 0);
       CREATE TABLE events(job text COLLATE "C" NOT NULL, sequence bigint NOT NULL, body text NOT NULL,
                           crc bigint NOT NULL, PRIMARY KEY(job, sequence));
       CREATE TABLE packs(job text COLLATE "C" NOT NULL, last bigint NOT NULL, first bigint NOT NULL,
                          bytes bytea NOT NULL, crc bigint NOT NULL, PRIMARY KEY(job, last));
       CREATE TABLE blobs(key text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL, crc bigint NOT NULL);
       CREATE TABLE holds(holder text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, PRIMARY KEY(holder, key));
       CREATE INDEX holds_key ON holds(key);
       CREATE TABLE unused(key text COLLATE "C" PRIMARY KEY, since_s double precision NOT NULL);
       -- The server that may write: each one has a greater number than those before it.
       CREATE TABLE writer(number bigint NOT NULL, address text NOT NULL, until timestamptz NOT NULL);
       INSERT INTO writer VALUES(1, '', '-infinity');
       CREATE TABLE tokens(hash text COLLATE "C" PRIMARY KEY, role text NOT NULL, job text NOT NULL,
                           name text NOT NULL, created_s double precision NOT NULL, expires_s double precision NOT NULL,
                           team text NOT NULL, crc bigint NOT NULL);
       CREATE TABLE history(job text COLLATE "C" NOT NULL, step_s bigint NOT NULL, start_s bigint NOT NULL,
                            source text COLLATE "C" NOT NULL, iterations bigint NOT NULL,
                            time_s double precision NOT NULL, least_s double precision NOT NULL,
                            most_s double precision NOT NULL, energy_iterations bigint NOT NULL,
                            energy_j double precision NOT NULL, planned_iterations bigint NOT NULL,
                            planned_s double precision NOT NULL, planned_j double precision NOT NULL,
                            straggler_iterations bigint NOT NULL, first_version bigint NOT NULL,
                            last_version bigint NOT NULL, crc bigint NOT NULL,
                            PRIMARY KEY(job, step_s, start_s, source));
       -- Sums of a domain's readings, as site_row.h writes them.
       CREATE TABLE site_history(domain text COLLATE "C" NOT NULL, step_s bigint NOT NULL, start_s bigint NOT NULL,
                                 source text COLLATE "C" NOT NULL, figures text NOT NULL, crc bigint NOT NULL,
                                 PRIMARY KEY(step_s, start_s, domain, source)))",
};
constexpr int kPostgresVersion = static_cast<int>(kPostgresMigrations.size());
/// Held while migrating, so that only one of several servers that start together migrates.
constexpr const char* kMigrationLock = "SELECT pg_advisory_xact_lock(7236828433)";

}  // namespace

void migrate(PostgresConnection& connection) {
  const auto is_there = [&](const char* query) { return connection.script(query).size() > 0; };
  connection.script("BEGIN");
  connection.script(kMigrationLock);
  connection.script("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0");
  // CREATE ... IF NOT EXISTS requires the privilege to create even if the object exists.
  if (!is_there("SELECT FROM pg_namespace WHERE nspname = 'perseus'")) connection.script("CREATE SCHEMA perseus");
  if (!is_there("SELECT FROM pg_tables WHERE schemaname = 'perseus' AND tablename = 'schema_version'")) {
    connection.script(
        "CREATE TABLE schema_version(version integer NOT NULL, least integer NOT NULL); "
        "INSERT INTO schema_version VALUES(0, 1)");
  }
  const PostgresRows versions = connection.script("SELECT version, least FROM schema_version");
  const std::int64_t version = versions.integer(0, 0), least = versions.integer(0, 1);
  if (least > kPostgresVersion) {
    throw PostgresFailure{
        {ErrorCode::invalid_input,
         fmt::format("database: its schema was written by a later Perseus (version {}, which needs at least {}; this "
                     "one knows up to {})",
                     version, least, kPostgresVersion)}};
  }
  for (std::int64_t i = version; i < kPostgresVersion; ++i) connection.script(kPostgresMigrations[i]);
  if (version < kPostgresVersion) {
    connection.script(fmt::format("UPDATE schema_version SET version = {}", kPostgresVersion));
  }
  connection.script("COMMIT");
}

}  // namespace perseus::postgres
