// Members of a server's answer, which may lack them or have them of another type.
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace perseus::cli {

/// Null without such a member, or where `value` is no object.
const boost::json::value* member_in(const boost::json::value& value, std::string_view name);
/// Empty without such a text.
std::string text_in(const boost::json::value& value, std::string_view name);
std::optional<double> number_in(const boost::json::value& value, std::string_view name);
/// Empty without such a list.
const boost::json::array& list_in(const boost::json::value& value, std::string_view name);
/// Null without such a list.
boost::json::array* list_to_change(boost::json::value& value, std::string_view name);

}  // namespace perseus::cli
