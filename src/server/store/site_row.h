// What a domain of a site was allowed, what was planned for it and what it drew within a minute or an hour, as sums
// over readings that add up.
//
// Input:   readings taken at equal intervals; each server writes its own rows, under a
//          name of its own (`source`).
// Output:  add() is commutative and associative, so rows of servers that followed each other, and minutes of an hour,
//          add up in any order. In a database the figures are one text, `NAME=SUM` separated by spaces; unknown names
//          are skipped, so that a later version may add some.
// Errors:  site_row(): nothing for a row that is not as it was written.
// Cost:    linear in the tiers.
// Threads: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "server/store/history_row.h"

namespace perseus::store {

/// Jobs of one least rate.
struct SiteTierSums {
  double accelerators = 0;
  double lost = 0;  ///< accelerators times the part of the rate that their job lost
  bool operator==(const SiteTierSums&) const = default;
};

/// Sums of W over readings, of accelerators unless their name says otherwise.
struct SiteFigures {
  std::int64_t readings = 0;
  std::int64_t limited = 0;                           ///< of these, with a limit in force
  std::int64_t over = 0;                              ///< of these, with more counted than the limit
  std::int64_t metered = 0;                           ///< readings with one of the site meter
  double metered_limit_w = 0, limit_w = 0;            ///< over `limited`; the first as metered
  double baseline_w = 0, metered_baseline_w = 0;      ///< without limits: the fastest plans; the second as metered
  double planned_w = 0, counted_w = 0;                ///< of the plans in force; the most that jobs may have drawn
  double reported_w = 0, planned_of_reporting_w = 0;  ///< of the jobs that report energies: measured, and planned
  double metered_w = 0;                               ///< over `metered`, as metered
  double missing_w = 0;
  std::map<double, SiteTierSums> tiers;  ///< by least rate
  void add(const SiteFigures& other);
  bool operator==(const SiteFigures&) const = default;
};

struct SiteRow {
  std::string domain;
  std::int64_t step_s = kMinute_s;  ///< or kHour_s
  std::int64_t start_s = 0;         ///< since 1970; a multiple of step_s
  std::string source;               ///< the server that allocated; empty: an hour's sum
  SiteFigures figures;
  bool operator==(const SiteRow&) const = default;
};

std::string format_site_figures(const SiteFigures& figures);
/// Nothing: no such text.
std::optional<SiteFigures> parse_site_figures(std::string_view text);
/// Of the row with its figures as text.
std::int64_t checksum_of(const SiteRow& row, std::string_view figures);

/// Columns of the table, in the order of site_row().
inline constexpr const char* kSiteColumns = "domain, step_s, start_s, source, figures, crc";

/// For a database row of kSiteColumns; `Row` has text and integer of a column.
template <class Row>
std::optional<SiteRow> site_row(const Row& row) {
  SiteRow read{row.text(0), row.integer(1), row.integer(2), row.text(3), {}};
  const std::string text = row.text(4);
  auto figures = parse_site_figures(text);
  if (!figures || row.integer(5) != checksum_of(read, text)) return std::nullopt;
  read.figures = *std::move(figures);
  return read;
}

}  // namespace perseus::store
