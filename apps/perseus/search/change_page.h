// Pictures of what each change to a job saves: a frontier per change, and where the energy of an iteration goes.
//
// Input:   the report of a search and its changes (search_changes.h).
// Output:  the page's first section: one chart with a line per change, bars of the energy of each change's plan, and
//          what each change assumes beyond those above it.
// Errors:  none.
// Cost:    O(points + computations * changes).
// Threads: pure.
#pragma once

#include <vector>

#include "io/report/static_page.h"
#include "search/search_changes.h"
#include "search/search_output.h"

namespace perseus::cli {

report::PageSection change_section(const SearchReport& report, const std::vector<ChangeRow>& changes);

}  // namespace perseus::cli
