// Formats a server's JSON response as text: one member a line, nested members indented.
//
// Input:   any JSON value; a member whose name ends in _s, _j, _w, _w_per_s, _pct or _mhz is a number in that unit.
// Output:  numbers with their unit instead of the ending: "energy: 1,155.5 J". Times since 1970 (from 1e9 s on; from_s)
//          become UTC as in RFC 3339: "deployed: 2026-11-22T21:31:21Z"; durations from 2 min on are in min, h or days.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

namespace perseus::cli {

std::string answer_text(const boost::json::value& answer);
/// One member, on one line: its number with the unit that its name ends in.
std::string member_text(std::string_view name, const boost::json::value& value);

}  // namespace perseus::cli
