// Splits text at a separator, and takes the white space at its ends away.
//
// Output:  views of the items between separators, in order, unchanged: n separators give n + 1 items, so that callers
//          see empty items and report them. The empty text is one empty item; a list that may be empty is for the
//          caller to check first.
// Cost:    O(characters).
#pragma once

#include <string_view>
#include <vector>

namespace perseus {

inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> items;
  for (;;) {
    const std::size_t end = text.find(separator);
    items.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return items;
    text.remove_prefix(end + 1);
  }
}

inline std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace perseus
