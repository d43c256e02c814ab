// What both databases do alike with their tables, in SQL that both understand.
//
// Input:   a connection, within the caller's transaction where it matters: run(sql, values...), and
//          each(sql, visit, values...) with a row that has text, integer, number and is_null of a column. Parameters
//          are $1, $2 ..., which first appear in this order.
// Output:  as in store.h.
// Errors:  as in store.h for damaged rows; failures of the connection pass through.
// Cost:    a statement per call; age_history(): some per job.
// Threads: those of the connection.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/checksum.h"
#include "server/store/history_row.h"
#include "server/store/site_row.h"
#include "server/store/store.h"
#include "server/store/stored_log.h"

namespace perseus::store {

template <class Connection>
std::vector<JobIndexRow> read_jobs(Connection& connection) {
  static const std::string sql = fmt::format("SELECT {} FROM jobs ORDER BY job", kJobColumns);
  std::vector<JobIndexRow> rows;
  connection.each(sql.c_str(), [&](const auto& found) { rows.push_back(job_index_row(found)); });
  return rows;
}

template <class Connection>
void remove_job(Connection& connection, const std::string& job) {
  for (const char* const sql : {"DELETE FROM jobs WHERE job = $1", "DELETE FROM events WHERE job = $1",
                                "DELETE FROM packs WHERE job = $1", "DELETE FROM history WHERE job = $1"}) {
    connection.run(sql, job);
  }
  connection.run("DELETE FROM holds WHERE holder = $1", holder_of_job(job));
}

template <class Connection>
void remove_blob(Connection& connection, const std::string& key) {
  for (const char* const sql : {"DELETE FROM blobs WHERE key = $1", "DELETE FROM unused WHERE key = $1",
                                "DELETE FROM holds WHERE holder = $1"}) {
    connection.run(sql, key);
  }
}

template <class Connection>
std::vector<HeldBlob> read_held_blobs(Connection& connection) {
  std::vector<HeldBlob> held;
  connection.each(
      "SELECT substr(holder, 5), key, length(bytes) FROM holds JOIN blobs USING (key) "
      "WHERE holder > 'job/' AND holder < 'job0' ORDER BY holder, key",
      [&](const auto& found) {
        held.push_back({found.text(0), found.text(1), found.integer(2)});
      });
  return held;
}

// ---- Tokens

template <class Connection>
void put_token(Connection& connection, const TokenRow& token) {
  static const std::string sql = fmt::format(
      "INSERT INTO tokens({}) VALUES($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (hash) DO UPDATE SET "
      "role = excluded.role, job = excluded.job, name = excluded.name, created_s = excluded.created_s, "
      "expires_s = excluded.expires_s, team = excluded.team, crc = excluded.crc",
      kTokenColumns);
  connection.run(sql.c_str(), token.hash, token.role, token.job, token.name, token.created_s, token.expires_s,
                 token.team, checksum_of(token));
}

template <class Connection>
Result<std::vector<TokenRow>> read_tokens(Connection& connection) {
  static const std::string sql = fmt::format("SELECT {} FROM tokens ORDER BY hash", kTokenColumns);
  std::vector<TokenRow> rows;
  bool right = true;
  connection.each(sql.c_str(), [&](const auto& found) {
    rows.push_back(token_row(found));
    right = right && found.integer(7) == checksum_of(rows.back());
  });
  if (!right) return damaged_in_database("a token");
  return rows;
}

// ---- History

template <class Connection>
void read_history_of(Connection& connection, const std::string& job, std::int64_t step_s, std::int64_t from_s,
                     std::int64_t to_s, std::vector<HistoryRow>& into) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM history WHERE job = $1 AND step_s = $2 AND start_s >= $3 AND start_s < $4 "
      "ORDER BY start_s, source",
      kHistoryColumns);
  connection.each(
      sql.c_str(),
      [&](const auto& found) {
        if (auto row = history_row(found)) into.push_back(*std::move(row));
      },
      job, step_s, from_s, to_s);
}

template <class Connection>
std::vector<HistoryRow> read_history(Connection& connection, const std::string& job, std::int64_t from_s,
                                     std::int64_t to_s) {
  std::vector<HistoryRow> rows;
  for (const std::int64_t step_s : {kMinute_s, kHour_s}) read_history_of(connection, job, step_s, from_s, to_s, rows);
  return rows;
}

template <class Connection>
std::vector<HistoryBytes> read_history_bytes(Connection& connection) {
  std::vector<HistoryBytes> bytes;
  connection.each(
      "SELECT job, "
      "(SELECT max(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 60) - "
      "(SELECT min(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 60), "
      "(SELECT max(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 3600) - "
      "(SELECT min(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 3600) FROM jobs ORDER BY job",
      [&](const auto& found) {
        std::int64_t rows = 0;
        if (!found.is_null(1)) rows += found.integer(1) / kMinute_s + 1;
        if (!found.is_null(2)) rows += found.integer(2) / kHour_s + 1;
        if (rows > 0) bytes.push_back({found.text(0), rows * kHistoryRowBytes});
      });
  return bytes;
}

template <class Connection>
std::vector<SiteRow> read_site_history(Connection& connection, std::int64_t from_s, std::int64_t to_s) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM site_history WHERE step_s IN (60, 3600) AND start_s >= $1 AND start_s < $2 "
      "ORDER BY step_s, start_s, domain, source",
      kSiteColumns);
  std::vector<SiteRow> rows;
  connection.each(
      sql.c_str(),
      [&](const auto& found) {
        if (auto row = site_row(found)) rows.push_back(*std::move(row));
      },
      from_s, to_s);
  return rows;
}

/// Of one hour; true: there may be more.
template <class Connection>
bool age_site_history(Connection& connection, const AgeHistory& age) {
  connection.run("DELETE FROM site_history WHERE start_s < $1 AND step_s = 3600", age.hours_before_s);
  std::optional<std::int64_t> hour_s;
  connection.each(
      "SELECT start_s - start_s % 3600 FROM site_history WHERE start_s < $1 AND step_s = 60 ORDER BY start_s LIMIT 1",
      [&](const auto& found) { hour_s = found.integer(0); }, age.minutes_before_s);
  if (!hour_s) return false;
  const std::vector<SiteRow> rows = read_site_history(connection, *hour_s, *hour_s + kHour_s);
  connection.run("DELETE FROM site_history WHERE step_s IN (60, 3600) AND start_s >= $1 AND start_s < $2", *hour_s,
                 *hour_s + kHour_s);
  if (*hour_s >= age.hours_before_s) connection.write_site_history(site_hours_of(rows));
  return true;
}

/// A connection for it also writes rows: write_history(), write_site_history().
template <class Connection>
bool age_history(Connection& connection, const AgeHistory& age) {
  constexpr std::int64_t at_once = 20;  // jobs; other writers need their turn
  std::vector<std::string> jobs;
  connection.each(
      "SELECT job FROM (SELECT '' AS job UNION ALL SELECT job FROM jobs) AS jobs WHERE "
      "EXISTS (SELECT 1 FROM history h WHERE h.job = jobs.job AND step_s = 60 AND start_s < $1) OR "
      "EXISTS (SELECT 1 FROM history h WHERE h.job = jobs.job AND step_s = 3600 AND start_s < $2) LIMIT $3",
      [&](const auto& found) { jobs.push_back(found.text(0)); }, age.minutes_before_s, age.hours_before_s, at_once);
  for (const std::string& job : jobs) {
    std::vector<HistoryRow> minutes;
    read_history_of(connection, job, kMinute_s, 0, age.minutes_before_s, minutes);
    std::vector<HistoryRow> hours = hours_of(minutes);
    for (HistoryRow& hour : hours) {
      std::vector<HistoryRow> before;
      read_history_of(connection, job, kHour_s, hour.start_s, hour.start_s + 1, before);
      for (const HistoryRow& row : before) hour.figures.add(row.figures);
    }
    connection.write_history(hours);
    connection.run("DELETE FROM history WHERE job = $1 AND step_s = 60 AND start_s < $2", job, age.minutes_before_s);
    connection.run("DELETE FROM history WHERE job = $1 AND step_s = 3600 AND start_s < $2", job, age.hours_before_s);
  }
  const bool more = age_site_history(connection, age);
  return more || static_cast<std::int64_t>(jobs.size()) == at_once;
}

}  // namespace perseus::store
