// Measured iterations of a job within a minute or an hour, as sums that add up.
//
// Input:   figures of one server's minutes; each server writes its own rows, under a name of its own (`source`).
// Output:  add() is commutative and associative, so rows of servers that followed each other, and minutes of an hour,
//          add up in any order; hours_of(): the hours of minutes.
// Errors:  history_row(): nothing for a row that is not as it was written.
// Cost:    constant per row.
// Threads: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perseus::store {

inline constexpr std::int64_t kMinute_s = 60, kHour_s = 3600;
/// As `job` of a row: the sum of all jobs, which stays when jobs are removed. Its energies are those of iterations with
/// both a measured and a planned energy, so that their sums can be compared.
inline constexpr std::string_view kAllJobs;

struct HistoryFigures {
  std::int64_t iterations = 0;
  double time_s = 0;                    ///< sum over the iterations
  double least_s = 0, most_s = 0;       ///< of an iteration
  std::int64_t energy_iterations = 0;   ///< those with an energy from every rank
  double energy_j = 0;                  ///< sum over these
  std::int64_t planned_iterations = 0;  ///< those that followed a plan with a known cost
  double planned_s = 0, planned_j = 0;  ///< sums over these, as planned
  std::int64_t straggler_iterations = 0;
  std::int64_t first_version = 0, last_version = 0;  ///< of the plans followed; 0: none
  void add(const HistoryFigures& other);
  bool operator==(const HistoryFigures&) const = default;
};

struct HistoryRow {
  std::string job;
  std::int64_t step_s = kMinute_s;  ///< or kHour_s
  std::int64_t start_s = 0;         ///< since 1970; a multiple of step_s
  std::string source;               ///< the server that measured; empty: an hour's sum
  HistoryFigures figures;
  bool operator==(const HistoryRow&) const = default;
};

/// Moves minutes into hours, and removes old hours.
struct AgeHistory {
  std::int64_t minutes_before_s = 0;  ///< a multiple of kHour_s
  std::int64_t hours_before_s = 0;
};

/// Estimated space of a job's rows in the database.
struct HistoryBytes {
  std::string job;
  std::int64_t bytes = 0;
  bool operator==(const HistoryBytes&) const = default;
};
/// A row with its share of the index, as measured by bench/store_bench.cpp.
inline constexpr std::int64_t kHistoryRowBytes = 200;

/// One row per name and hour, without a source. `kName`: the member of a row with its name, as HistoryRow::job.
template <auto kName, class Row>
std::vector<Row> hours_of(const std::vector<Row>& rows) {
  std::map<std::pair<std::string_view, std::int64_t>, decltype(Row::figures)> sums;
  for (const Row& row : rows) sums[{row.*kName, row.start_s - row.start_s % kHour_s}].add(row.figures);
  std::vector<Row> hours;
  hours.reserve(sums.size());
  for (const auto& [of, figures] : sums) hours.push_back({std::string(of.first), kHour_s, of.second, "", figures});
  return hours;
}
std::int64_t checksum_of(const HistoryRow& row);

/// Columns of the table, in the order of history_row().
inline constexpr const char* kHistoryColumns =
    "job, step_s, start_s, source, iterations, time_s, least_s, most_s, energy_iterations, energy_j, "
    "planned_iterations, planned_s, planned_j, straggler_iterations, first_version, last_version, crc";

/// For a database row of kHistoryColumns; `Row` has text, integer and number of a column.
template <class Row>
std::optional<HistoryRow> history_row(const Row& row) {
  HistoryRow read{row.text(0), row.integer(1), row.integer(2), row.text(3), {}};
  HistoryFigures& figures = read.figures;
  figures.iterations = row.integer(4);
  figures.time_s = row.number(5);
  figures.least_s = row.number(6);
  figures.most_s = row.number(7);
  figures.energy_iterations = row.integer(8);
  figures.energy_j = row.number(9);
  figures.planned_iterations = row.integer(10);
  figures.planned_s = row.number(11);
  figures.planned_j = row.number(12);
  figures.straggler_iterations = row.integer(13);
  figures.first_version = row.integer(14);
  figures.last_version = row.integer(15);
  return row.integer(16) == checksum_of(read) ? std::optional(std::move(read)) : std::nullopt;
}

}  // namespace perseus::store
