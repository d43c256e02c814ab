// The saving of each kind of change to a job, cumulatively.
//
// Input:   planned configurations, the reference first, each with the largest change that it needs.
// Output:  a row per kind of change that was tried, in the order of Change: the plan of least energy within the
//          deadline among the configurations that need no larger change, its saving against the reference at maximum
//          clock, how much of that is new, the most that any plan of these configurations saves (proven), their
//          frontier, and what the row assumes beyond those above it. A tolerated slowdown has a row of its own after
//          clocks alone; all later rows use it.
// Errors:  none; where no plan is within the deadline the fastest one is in the row, which says so.
// Cost:    O(points * configurations).
#pragma once

#include <string>
#include <vector>

#include "command_line/records.h"
#include "io/report/static_page.h"
#include "planning/model/default_plan.h"
#include "search/search_output.h"

namespace perseus::cli {

struct ChangeRow {
  std::string change;  ///< "clocks alone", "+ recomputation"
  std::string configuration;
  int configuration_index = 0;
  model::FrontierPoint plan;
  bool is_tolerance = false;  ///< more time, as tolerated: the frontier of the row above
  bool is_late = false;       ///< no plan meets the deadline: this is the fastest, as where a noisy profile delays all
  double saving_pct = 0, more_pct = 0, most_pct = 0;
  Seconds deadline;                  ///< of a late plan: its time
  search::UnionFrontier line;        ///< of all configurations that need no larger change
  std::vector<std::string> assumes;  ///< not empty
};

std::vector<ChangeRow> changes_of(const std::vector<PlannedConfiguration>& configurations,
                                  const SearchSummary& summary);
Table table_of_changes(const std::vector<ChangeRow>& changes);
/// The page's first section: one chart with a line per change, bars of the energy of each change's plan, and what each
/// change assumes beyond those above it.
report::PageSection change_section(const SearchReport& report, const std::vector<ChangeRow>& changes);

}  // namespace perseus::cli
