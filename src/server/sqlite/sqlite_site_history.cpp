// SqliteTables: the history of the site's domains.
#include <fmt/format.h>

#include <utility>

#include "server/sqlite/sqlite_tables.h"

namespace perseus::sqlite {

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
