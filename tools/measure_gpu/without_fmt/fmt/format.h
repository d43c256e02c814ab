// Stand-in for {fmt}: replaces each "{}" by the next argument, for builds on machines without that library.
//
// Input:   a format string with "{}" alone, strings and numbers.
// Output:  std::string.
// Errors:  none; other replacement fields stay as they are.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace fmt {

template <class... Arguments>
std::string format(std::string_view text, const Arguments&... arguments) {
  std::ostringstream out;
  [[maybe_unused]] const auto put = [&](const auto& argument) {
    const std::size_t field = text.find("{}");
    out << text.substr(0, field);
    if (field == std::string_view::npos) return text = {}, void();
    out << argument;
    text.remove_prefix(field + 2);
  };
  (put(arguments), ...);
  out << text;
  return out.str();
}

}  // namespace fmt
