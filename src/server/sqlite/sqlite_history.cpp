// SqliteTables: the history of jobs' iterations.
#include <fmt/format.h>

#include <utility>

#include "server/sqlite/sqlite_tables.h"

namespace perseus::sqlite {

void SqliteTables::put_history(const store::HistoryRow& row) {
  const store::HistoryFigures& of = row.figures;
  connection_.run("INSERT OR REPLACE INTO history VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row.job,
                  row.step_s, row.start_s, row.source, of.iterations, of.time_s, of.least_s, of.most_s,
                  of.energy_iterations, of.energy_j, of.planned_iterations, of.planned_s, of.planned_j,
                  of.straggler_iterations, of.first_version, of.last_version, store::checksum_of(row));
}

void SqliteTables::write_history(const std::vector<store::HistoryRow>& rows) {
  for (const store::HistoryRow& row : rows) {
    bool is_there = row.job == store::kAllJobs;
    connection_.each(
        "SELECT 1 FROM job WHERE job = ?", [&](const SqliteRow&) { is_there = true; }, row.job);
    if (is_there) put_history(row);
  }
}

std::vector<store::HistoryRow> SqliteTables::history(const std::string& job, std::int64_t from_s, std::int64_t to_s) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM history WHERE job = ?1 AND step_s = ?2 AND start_s >= ?3 AND start_s < ?4 "
      "ORDER BY start_s, source",
      store::kHistoryColumns);
  std::vector<store::HistoryRow> rows;
  for (const std::int64_t step_s : {store::kMinute_s, store::kHour_s}) {
    connection_.each(
        sql.c_str(),
        [&](const SqliteRow& found) {
          if (auto row = store::history_row(found)) rows.push_back(*std::move(row));
        },
        job, step_s, from_s, to_s);
  }
  return rows;
}

bool SqliteTables::age_history(const store::AgeHistory& age) {
  constexpr std::int64_t at_once = 20;  // jobs; other writers need their turn
  std::vector<std::string> jobs;
  connection_.each(
      "SELECT job FROM (SELECT '' AS job UNION ALL SELECT job FROM job) AS job WHERE "
      "EXISTS (SELECT 1 FROM history WHERE history.job = job.job AND step_s = 60 AND start_s < ?1) OR "
      "EXISTS (SELECT 1 FROM history WHERE history.job = job.job AND step_s = 3600 AND start_s < ?2) LIMIT ?3",
      [&](const SqliteRow& found) { jobs.push_back(found.text(0)); }, age.minutes_before_s, age.hours_before_s,
      at_once);
  for (const std::string& job : jobs) age_history_of(job, age);
  const bool more = age_site_history(age);
  return more || static_cast<std::int64_t>(jobs.size()) == at_once;
}

void SqliteTables::age_history_of(const std::string& job, const store::AgeHistory& age) {
  std::vector<store::HistoryRow> minutes = history(job, 0, age.minutes_before_s);
  std::erase_if(minutes, [](const store::HistoryRow& row) { return row.step_s != store::kMinute_s; });
  for (store::HistoryRow& hour : store::hours_of(minutes)) {
    for (const store::HistoryRow& before : history(job, hour.start_s, hour.start_s + 1)) {
      if (before.step_s == store::kHour_s) hour.figures.add(before.figures);
    }
    put_history(hour);
  }
  connection_.run("DELETE FROM history WHERE job = ? AND step_s = 60 AND start_s < ?", job, age.minutes_before_s);
  connection_.run("DELETE FROM history WHERE job = ? AND step_s = 3600 AND start_s < ?", job, age.hours_before_s);
}

std::vector<store::HistoryBytes> SqliteTables::history_bytes() {
  std::vector<store::HistoryBytes> bytes;
  connection_.each(
      "SELECT job, "
      "(SELECT max(start_s) FROM history WHERE history.job = job.job AND step_s = 60) - "
      "(SELECT min(start_s) FROM history WHERE history.job = job.job AND step_s = 60), "
      "(SELECT max(start_s) FROM history WHERE history.job = job.job AND step_s = 3600) - "
      "(SELECT min(start_s) FROM history WHERE history.job = job.job AND step_s = 3600) FROM job ORDER BY job",
      [&](const SqliteRow& found) {
        std::int64_t rows = 0;
        if (!found.is_null(1)) rows += found.integer(1) / store::kMinute_s + 1;
        if (!found.is_null(2)) rows += found.integer(2) / store::kHour_s + 1;
        if (rows > 0) bytes.push_back({found.text(0), rows * store::kHistoryRowBytes});
      });
  return bytes;
}

void SqliteTables::write_site_history(const std::vector<store::SiteRow>& rows) {
  for (const store::SiteRow& row : rows) {
    const std::string figures = store::format_site_figures(row.figures);
    connection_.run("INSERT OR REPLACE INTO site_history VALUES(?, ?, ?, ?, ?, ?)", row.domain, row.step_s, row.start_s,
                    row.source, figures, store::checksum_of(row, figures));
  }
}

std::vector<store::SiteRow> SqliteTables::site_history(std::int64_t from_s, std::int64_t to_s) {
  static const std::string sql = fmt::format(
      "SELECT {} FROM site_history WHERE step_s IN (60, 3600) AND start_s >= ? AND start_s < ? "
      "ORDER BY step_s, start_s, domain, source",
      store::kSiteColumns);
  std::vector<store::SiteRow> rows;
  connection_.each(
      sql.c_str(),
      [&](const SqliteRow& found) {
        if (auto row = store::site_row(found)) rows.push_back(*std::move(row));
      },
      from_s, to_s);
  return rows;
}

/// The minutes of one hour; other writers need their turn.
bool SqliteTables::age_site_history(const store::AgeHistory& age) {
  connection_.run("DELETE FROM site_history WHERE start_s < ? AND step_s = 3600", age.hours_before_s);
  std::optional<std::int64_t> hour_s;
  connection_.each(
      "SELECT start_s - start_s % 3600 FROM site_history WHERE start_s < ? AND step_s = 60 ORDER BY start_s LIMIT 1",
      [&](const SqliteRow& found) { hour_s = found.integer(0); }, age.minutes_before_s);
  if (!hour_s) return false;
  const std::vector<store::SiteRow> rows = site_history(*hour_s, *hour_s + store::kHour_s);
  connection_.run("DELETE FROM site_history WHERE step_s IN (60, 3600) AND start_s >= ? AND start_s < ?", *hour_s,
                  *hour_s + store::kHour_s);
  if (*hour_s >= age.hours_before_s) write_site_history(store::site_hours_of(rows));
  return true;
}

}  // namespace perseus::sqlite
