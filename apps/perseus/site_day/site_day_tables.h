// The tables of `perseus site emulate`, which the terminal and the page show alike, and the page.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "io/report/comparison_text.h"
#include "site_day/site_day_output.h"

namespace perseus::cli {

/// Kilowatts and seconds, as the tables print them.
std::string kilowatts(Watts power);

report::TextRows day_rows(const SiteDayReport& report);    ///< a line per method: work and energy
report::TextRows limit_rows(const SiteDayReport& report);  ///< a line per method and limited domain
report::TextRows band_rows(const SiteDayReport& report);   ///< a line per method and finer trace
/// Minutes of the site under the first method: at most that many, evenly apart.
report::TextRows proof_rows(const SiteDayReport& report, std::size_t most);

/// Power against the limit over the day and around events, and the tables.
void write_site_day_page(const SiteDayReport& report, const report::Sink& sink);

}  // namespace perseus::cli
