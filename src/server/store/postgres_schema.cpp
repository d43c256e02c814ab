#include "server/store/postgres_schema.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/checksum.h"
#include "server/store/stored_log.h"

namespace perseus::store {
namespace {

/// Migrations from schema version i to i + 1. Never change an entry: add one. Texts are ordered by their bytes, as
/// everywhere else.
constexpr std::array kPostgresMigrations = {
    R"(CREATE TABLE job(job text COLLATE "C" PRIMARY KEY, state text NOT NULL, name text NOT NULL,
                        created_s double precision NOT NULL, updated_s double precision NOT NULL,
                        next_wake_s double precision, last_sequence bigint NOT NULL);
       CREATE TABLE event(job text COLLATE "C" NOT NULL, sequence bigint NOT NULL, body text NOT NULL,
                          PRIMARY KEY(job, sequence));
       CREATE TABLE blob(key text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
       CREATE TABLE claim(work text COLLATE "C" PRIMARY KEY, owner text NOT NULL, until_s double precision NOT NULL);
       CREATE TABLE token(hash text COLLATE "C" PRIMARY KEY, role text NOT NULL, job text NOT NULL, name text NOT NULL,
                          created_s double precision NOT NULL);)",
    "ALTER TABLE job ADD COLUMN summary text NOT NULL DEFAULT ''",
    "ALTER TABLE token ADD COLUMN expires_s double precision NOT NULL DEFAULT 0;"
    "ALTER TABLE token ADD COLUMN team text NOT NULL DEFAULT ''",
    // Checksums (made by fill_checksums()), packed logs, and the record of used blobs. The tables get new names, so
    // that running servers of version 3 can neither read nor write what they do not understand.
    R"(ALTER TABLE job RENAME TO jobs;
       ALTER TABLE event RENAME TO events;
       ALTER TABLE blob RENAME TO blobs;
       ALTER TABLE token RENAME TO tokens;
       ALTER TABLE jobs ADD COLUMN bytes bigint NOT NULL DEFAULT 0, ADD COLUMN packed bigint NOT NULL DEFAULT 0,
                        ADD COLUMN crc bigint NOT NULL DEFAULT 0;
       ALTER TABLE events ADD COLUMN crc bigint NOT NULL DEFAULT 0;
       ALTER TABLE blobs ADD COLUMN crc bigint NOT NULL DEFAULT 0;
       ALTER TABLE tokens ADD COLUMN crc bigint NOT NULL DEFAULT 0;
       ALTER TABLE schema_version ADD COLUMN least integer NOT NULL DEFAULT 4;
       CREATE TABLE packs(job text COLLATE "C" NOT NULL, last bigint NOT NULL, first bigint NOT NULL,
                          bytes bytea NOT NULL, crc bigint NOT NULL, PRIMARY KEY(job, last));
       CREATE TABLE holds(holder text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, PRIMARY KEY(holder, key));
       CREATE INDEX holds_key ON holds(key);
       CREATE TABLE unused(key text COLLATE "C" PRIMARY KEY, since_s double precision NOT NULL);
       UPDATE jobs SET bytes = (SELECT coalesce(sum(octet_length(body)), 0) FROM events WHERE events.job = jobs.job);
       -- What holds what, from bodies as versions 1 to 3 wrote them: the key is 32 characters after "input":".
       INSERT INTO holds
         SELECT 'job/' || job, kind || substr(body, strpos(body, '"input":"') + 9, 32)
         FROM events, unnest(ARRAY['input/', 'frontier/']) kind
         WHERE starts_with(body, '{"kind":"profile_known"') AND strpos(body, '"input":"') > 0 ON CONFLICT DO NOTHING;
       INSERT INTO holds
         SELECT key, kind || CASE WHEN strpos(body, '"input":"') > 0
                                  THEN substr(body, strpos(body, '"input":"') + 9, 32) ELSE body END
         FROM (SELECT key, convert_from(bytes, 'UTF8') AS body FROM blobs WHERE starts_with(key, 'known/')) learned,
              unnest(ARRAY['input/', 'frontier/']) kind ON CONFLICT DO NOTHING;
       INSERT INTO holds
         SELECT 'job/' || jobs.job, key
         FROM (SELECT key, convert_from(bytes, 'UTF8') AS body FROM blobs WHERE starts_with(key, 'known/')) learned, jobs
         WHERE strpos(body, '"job":"' || jobs.job || '"') > 0 ON CONFLICT DO NOTHING)",
    R"(CREATE TABLE history(job text COLLATE "C" NOT NULL, step_s bigint NOT NULL, start_s bigint NOT NULL,
                            source text COLLATE "C" NOT NULL, iterations bigint NOT NULL,
                            time_s double precision NOT NULL, least_s double precision NOT NULL,
                            most_s double precision NOT NULL, energy_iterations bigint NOT NULL,
                            energy_j double precision NOT NULL, planned_iterations bigint NOT NULL,
                            planned_s double precision NOT NULL, planned_j double precision NOT NULL,
                            straggler_iterations bigint NOT NULL, first_version bigint NOT NULL,
                            last_version bigint NOT NULL, crc bigint NOT NULL,
                            PRIMARY KEY(job, step_s, start_s, source)))",
    // Sums of a domain's readings, as site_row.h writes them.
    R"(CREATE TABLE site_history(domain text COLLATE "C" NOT NULL, step_s bigint NOT NULL, start_s bigint NOT NULL,
                                 source text COLLATE "C" NOT NULL, figures text NOT NULL, crc bigint NOT NULL,
                                 PRIMARY KEY(step_s, start_s, domain, source)))",
};
constexpr int kPostgresVersion = static_cast<int>(kPostgresMigrations.size());
/// Held while migrating, so that only one of several servers that start together migrates.
constexpr const char* kMigrationLock = "SELECT pg_advisory_xact_lock(7236828433)";

constexpr std::int64_t kEventsAtOnce = 1000;

void fill_event_checksums(PostgresConnection& connection) {
  std::string job;
  for (std::int64_t sequence = 0;;) {
    const PostgresRows rows = connection.run(
        "SELECT job, sequence, body FROM events WHERE (job, sequence) > ($1, $2) ORDER BY job, sequence LIMIT $3",
        {std::string_view(job), sequence, kEventsAtOnce});
    if (rows.size() == 0) break;
    std::vector<std::string> jobs;
    std::vector<std::int64_t> sequences, checksums;
    for (int row = 0; row < rows.size(); ++row) {
      jobs.push_back(rows.text(row, 0));
      sequences.push_back(rows.integer(row, 1));
      checksums.push_back(checksum_of_event(jobs.back(), sequences.back(), rows.text(row, 2)));
    }
    connection.run(
        "UPDATE events SET crc = new.crc FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS new(job, sequence, "
        "crc) "
        "WHERE events.job = new.job AND events.sequence = new.sequence",
        {array_literal(jobs), array_literal(sequences), array_literal(checksums)});
    job = jobs.back();
    sequence = sequences.back();
  }
}

void fill_index_checksums(PostgresConnection& connection) {
  const PostgresRows index = connection.script(fmt::format("SELECT {} FROM jobs", kJobColumns));
  for (int row = 0; row < index.size(); ++row) {
    const JobIndexRow of = job_index_row(PostgresRow{index, row});
    connection.run("UPDATE jobs SET crc = $2 WHERE job = $1", {std::string_view(of.job), checksum_of(of)});
  }
}

void fill_token_checksums(PostgresConnection& connection) {
  const PostgresRows tokens = connection.script(fmt::format("SELECT {} FROM tokens", kTokenColumns));
  for (int row = 0; row < tokens.size(); ++row) {
    const TokenRow of = token_row(PostgresRow{tokens, row});
    connection.run("UPDATE tokens SET crc = $2 WHERE hash = $1", {std::string_view(of.hash), checksum_of(of)});
  }
}

void fill_blob_checksums(PostgresConnection& connection) {
  const PostgresRows keys = connection.script("SELECT key FROM blobs");
  for (int row = 0; row < keys.size(); ++row) {
    const std::string key = keys.text(row, 0);
    const std::array<PostgresValue, 1> values{key};
    const PostgresRows bytes = connection.run("SELECT bytes FROM blobs WHERE key = $1", values, true);
    connection.run("UPDATE blobs SET crc = $2 WHERE key = $1",
                   {std::string_view(key), checksum_of_blob(key, bytes.text(0, 0))});
  }
}

/// Part of the migration to version 4: PostgreSQL cannot compute our checksums.
void fill_checksums(PostgresConnection& connection) {
  fill_event_checksums(connection);
  fill_index_checksums(connection);
  fill_token_checksums(connection);
  fill_blob_checksums(connection);
}

}  // namespace

void migrate(PostgresConnection& connection) {
  const auto is_there = [&](const char* query) { return connection.script(query).size() > 0; };
  connection.script("BEGIN");
  connection.script(kMigrationLock);
  connection.script("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0");
  // CREATE ... IF NOT EXISTS requires the privilege to create even if the object exists.
  if (!is_there("SELECT FROM pg_namespace WHERE nspname = 'perseus'")) connection.script("CREATE SCHEMA perseus");
  if (!is_there("SELECT FROM pg_tables WHERE schemaname = 'perseus' AND tablename = 'schema_version'")) {
    connection.script("CREATE TABLE schema_version(version integer NOT NULL); INSERT INTO schema_version VALUES(0)");
  }
  const std::int64_t version = connection.script("SELECT version FROM schema_version").integer(0, 0);
  const std::int64_t least =
      version < 4 ? version : connection.script("SELECT least FROM schema_version").integer(0, 0);
  if (least > kPostgresVersion) {
    throw PostgresFailure{
        {ErrorCode::invalid_input,
         fmt::format("database: its schema was written by a later Perseus (version {}, which needs at least {}; this "
                     "one knows up to {})",
                     version, least, kPostgresVersion)}};
  }
  for (std::int64_t i = version; i < kPostgresVersion; ++i) {
    connection.script(kPostgresMigrations[i]);
    if (i + 1 == 4) fill_checksums(connection);
  }
  if (version < kPostgresVersion) {
    connection.script(fmt::format("UPDATE schema_version SET version = {}", kPostgresVersion));
  }
  connection.script("COMMIT");
}

}  // namespace perseus::store
