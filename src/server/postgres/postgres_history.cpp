#include "server/postgres/postgres_history.h"

#include <fmt/format.h>

#include <utility>

#include "server/postgres/postgres_transaction.h"

namespace perseus::postgres {
namespace {

/// The rows that are as they were written.
std::vector<store::HistoryRow> rows_of(const PostgresRows& found) {
  std::vector<store::HistoryRow> rows;
  rows.reserve(static_cast<std::size_t>(found.size()));
  for (int k = 0; k < found.size(); ++k) {
    if (auto row = store::history_row(PostgresRow{found, k})) rows.push_back(*std::move(row));
  }
  return rows;
}

/// Array literals of the columns, in their order.
std::vector<PostgresValue> columns_of(const std::vector<store::HistoryRow>& rows) {
  std::vector<std::string> jobs, sources;
  std::vector<std::vector<std::int64_t>> integers(9);
  std::vector<std::vector<std::optional<double>>> numbers(6);
  for (const store::HistoryRow& row : rows) {
    const store::HistoryFigures& of = row.figures;
    jobs.push_back(row.job);
    sources.push_back(row.source);
    std::size_t column = 0;
    for (const std::int64_t value :
         {row.step_s, row.start_s, of.iterations, of.energy_iterations, of.planned_iterations, of.straggler_iterations,
          of.first_version, of.last_version, store::checksum_of(row)}) {
      integers[column++].push_back(value);
    }
    column = 0;
    for (const double value : {of.time_s, of.least_s, of.most_s, of.energy_j, of.planned_s, of.planned_j}) {
      numbers[column++].emplace_back(value);
    }
  }
  std::vector<PostgresValue> columns{array_literal(jobs), array_literal(sources)};
  for (const auto& column : integers) columns.emplace_back(array_literal(column));
  for (const auto& column : numbers) columns.emplace_back(array_literal(column));
  return columns;
}

}  // namespace

std::vector<store::HistoryRow> read_history(PostgresConnection& connection, const std::string& job, std::int64_t from_s,
                                            std::int64_t to_s) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM history WHERE job = $1 AND step_s IN (60, 3600) AND start_s >= $2 AND start_s < $3 "
      "ORDER BY step_s, start_s, source",
      store::kHistoryColumns);
  return rows_of(connection.run(sql.c_str(), {std::string_view(job), from_s, to_s}));
}

std::vector<store::HistoryBytes> read_history_bytes(PostgresConnection& connection) {
  const PostgresRows found = connection.run(
      "SELECT job, "
      "(SELECT max(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 60) - "
      "(SELECT min(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 60), "
      "(SELECT max(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 3600) - "
      "(SELECT min(start_s) FROM history h WHERE h.job = jobs.job AND step_s = 3600) FROM jobs ORDER BY job",
      {});
  std::vector<store::HistoryBytes> bytes;
  for (int k = 0; k < found.size(); ++k) {
    std::int64_t rows = 0;
    if (!found.is_null(k, 1)) rows += found.integer(k, 1) / store::kMinute_s + 1;
    if (!found.is_null(k, 2)) rows += found.integer(k, 2) / store::kHour_s + 1;
    if (rows > 0) bytes.push_back({found.text(k, 0), rows * store::kHistoryRowBytes});
  }
  return bytes;
}

void PostgresTransaction::write_history(const std::vector<store::HistoryRow>& rows) {
  flush();
  if (rows.empty()) return;
  connection_.run(
      "INSERT INTO history(job, source, step_s, start_s, iterations, energy_iterations, planned_iterations, "
      "straggler_iterations, first_version, last_version, crc, time_s, least_s, most_s, energy_j, planned_s, "
      "planned_j) "
      "SELECT new.* FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], "
      "$7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::double precision[], "
      "$13::double precision[], $14::double precision[], $15::double precision[], $16::double precision[], "
      "$17::double precision[]) AS new(job, source, step_s, start_s, iterations, energy_iterations, "
      "planned_iterations, straggler_iterations, first_version, last_version, crc, time_s, least_s, most_s, energy_j, "
      "planned_s, planned_j) "
      "WHERE new.job = '' OR EXISTS (SELECT FROM jobs WHERE jobs.job = new.job) "
      "ON CONFLICT (job, step_s, start_s, source) DO UPDATE SET iterations = excluded.iterations, "
      "energy_iterations = excluded.energy_iterations, planned_iterations = excluded.planned_iterations, "
      "straggler_iterations = excluded.straggler_iterations, first_version = excluded.first_version, "
      "last_version = excluded.last_version, crc = excluded.crc, time_s = excluded.time_s, "
      "least_s = excluded.least_s, most_s = excluded.most_s, energy_j = excluded.energy_j, "
      "planned_s = excluded.planned_s, planned_j = excluded.planned_j",
      columns_of(rows));
}

bool PostgresTransaction::age_history(const store::AgeHistory& age) {
  constexpr std::int64_t at_once = 20;  // jobs; other writers need their turn
  flush();
  // Only one server changes hours at a time; minutes can be written meanwhile.
  connection_.run("SELECT pg_advisory_xact_lock(7236828434)", {});
  const PostgresRows found = connection_.run(
      "SELECT job FROM (SELECT '' AS job UNION ALL SELECT job FROM jobs) AS jobs WHERE "
      "EXISTS (SELECT FROM history h WHERE h.job = jobs.job AND step_s = 60 AND start_s < $1) OR "
      "EXISTS (SELECT FROM history h WHERE h.job = jobs.job AND step_s = 3600 AND start_s < $2) LIMIT $3",
      {age.minutes_before_s, age.hours_before_s, at_once});
  std::vector<std::string> jobs;
  for (int k = 0; k < found.size(); ++k) jobs.push_back(found.text(k, 0));
  static const std::string minutes_sql =
      fmt::format("DELETE FROM history WHERE job = ANY($1::text[]) AND step_s = 60 AND start_s < $2 RETURNING {}",
                  store::kHistoryColumns);
  static const std::string hours_sql = fmt::format(
      "SELECT {} FROM history WHERE job = ANY($1::text[]) AND start_s = ANY($2::bigint[]) AND step_s = 3600",
      store::kHistoryColumns);
  std::vector<store::HistoryRow> rows =
      rows_of(connection_.run(minutes_sql.c_str(), {array_literal(jobs), age.minutes_before_s}));
  std::vector<std::int64_t> starts;
  std::vector<store::HistoryRow> hours = store::hours_of(rows);
  for (const store::HistoryRow& hour : hours) starts.push_back(hour.start_s);
  for (store::HistoryRow& before :
       rows_of(connection_.run(hours_sql.c_str(), {array_literal(jobs), array_literal(starts)}))) {
    hours.push_back(std::move(before));
  }
  // Hours without a new minute are written as they were.
  write_history(store::hours_of(hours));
  connection_.run("DELETE FROM history WHERE job = ANY($1::text[]) AND step_s = 3600 AND start_s < $2",
                  {array_literal(jobs), age.hours_before_s});
  const bool more = age_site_history(age);
  return more || found.size() == at_once;
}

std::vector<store::SiteRow> read_site_history(PostgresConnection& connection, std::int64_t from_s, std::int64_t to_s) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM site_history WHERE step_s IN (60, 3600) AND start_s >= $1 AND start_s < $2 "
      "ORDER BY step_s, start_s, domain, source",
      store::kSiteColumns);
  const PostgresRows found = connection.run(sql.c_str(), {from_s, to_s});
  std::vector<store::SiteRow> rows;
  for (int k = 0; k < found.size(); ++k) {
    if (auto row = store::site_row(PostgresRow{found, k})) rows.push_back(*std::move(row));
  }
  return rows;
}

void PostgresTransaction::write_site_history(const std::vector<store::SiteRow>& rows) {
  flush();
  if (rows.empty()) return;
  std::vector<std::string> domains, sources, figures;
  std::vector<std::int64_t> steps, starts, checksums;
  for (const store::SiteRow& row : rows) {
    domains.push_back(row.domain);
    sources.push_back(row.source);
    figures.push_back(store::format_site_figures(row.figures));
    steps.push_back(row.step_s);
    starts.push_back(row.start_s);
    checksums.push_back(store::checksum_of(row, figures.back()));
  }
  connection_.run(
      "INSERT INTO site_history(domain, step_s, start_s, source, figures, crc) "
      "SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[]) "
      "ON CONFLICT (step_s, start_s, domain, source) DO UPDATE SET figures = excluded.figures, crc = excluded.crc",
      {array_literal(domains), array_literal(steps), array_literal(starts), array_literal(sources),
       array_literal(figures), array_literal(checksums)});
}

/// The minutes of one hour; other writers need their turn. The lock of age_history() is held.
bool PostgresTransaction::age_site_history(const store::AgeHistory& age) {
  connection_.run("DELETE FROM site_history WHERE start_s < $1 AND step_s = 3600", {age.hours_before_s});
  const PostgresRows oldest = connection_.run(
      "SELECT start_s - start_s % 3600 FROM site_history WHERE start_s < $1 AND step_s = 60 ORDER BY start_s LIMIT 1",
      {age.minutes_before_s});
  if (oldest.size() == 0) return false;
  const std::int64_t hour_s = oldest.integer(0, 0);
  const std::vector<store::SiteRow> rows = read_site_history(connection_, hour_s, hour_s + store::kHour_s);
  connection_.run("DELETE FROM site_history WHERE step_s IN (60, 3600) AND start_s >= $1 AND start_s < $2",
                  {hour_s, hour_s + store::kHour_s});
  if (hour_s >= age.hours_before_s) write_site_history(store::site_hours_of(rows));
  return true;
}

}  // namespace perseus::postgres
