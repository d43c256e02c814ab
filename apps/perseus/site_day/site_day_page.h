// The page of `perseus site emulate`: power against the limit over the day and around events, and its tables.
//
// Cost:    O(bins).
// Threads: pure function.
#pragma once

#include "site_day/site_day_output.h"

namespace perseus::cli {

void write_site_day_page(const SiteDayReport& report, const report::Sink& sink);

}  // namespace perseus::cli
