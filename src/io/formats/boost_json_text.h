// The text of a Boost.JSON value by the one writer of JSON (base/json_writer.h).
//
// Problem: Boost.JSON prints 83.64 as 8.364E1.
// Output:  as base/json_writer.h; members in the object's order.
// Source:  docs/decisions/0047.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace perseus::formats {

std::string json_text(const boost::json::value& value);
std::string json_text(const boost::json::object& object);
std::string json_text(const boost::json::array& array);

}  // namespace perseus::formats
