// PostgresTransaction: the histories of jobs and of the site.
#include "server/postgres/postgres_transaction.h"

namespace perseus::postgres {
namespace {

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

}  // namespace perseus::postgres
