// The history of the site's domains in a PostgreSQL store.
#include <fmt/format.h>

#include <utility>

#include "server/postgres/postgres_history.h"
#include "server/postgres/postgres_transaction.h"

namespace perseus::postgres {

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
