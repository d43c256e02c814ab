// The screen of `perseus site status`: is the site safe, who holds how much, what comes next, and what to do.
//
// Input:   the answer to GET /v1/site/power.
// Output:  one line of verdict per domain above its limit or short of watts, or one that all is well; a table of the
//          domains with the jobs of each below it by watts, kMostJobs of a domain unless `wide`, and long names cut
//          to the terminal; the next falls of limits; a command for each thing to do.
// Errors:  none: what the answer does not have is not shown.
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace perseus::cli {

inline constexpr std::size_t kMostJobs = 10;

/// `columns`: of the terminal.
std::string site_status_text(const boost::json::value& power, bool wide, double now_s, std::size_t columns);

}  // namespace perseus::cli
