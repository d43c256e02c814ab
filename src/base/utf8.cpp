#include "base/utf8.h"

#include <utf8.h>

#include <algorithm>
#include <iterator>

namespace perseus {

CodePoint first_code_point(std::string_view text) {
  constexpr std::size_t longest = 4;
  const std::string_view window = text.substr(0, longest);
  if (::utf8::find_invalid(window) == 0) return {};
  const char* end = window.data();
  const char32_t value = ::utf8::unchecked::next(end);
  return {value, static_cast<std::size_t>(end - window.data())};
}

void append_utf8(std::string& out, char32_t point) { ::utf8::unchecked::append(point, std::back_inserter(out)); }

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t good = std::min(::utf8::find_invalid(text), text.size());
    valid += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) break;
    valid += '?';
    text.remove_prefix(1);
  }
  return valid;
}

std::size_t display_columns(std::string_view utf8) {
  return static_cast<std::size_t>(::utf8::unchecked::distance(utf8.begin(), utf8.end()));
}

bool changes_display(char32_t point) {
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x61C || point == 0x200E || point == 0x200F ||
         (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

}  // namespace perseus
