#include "io/report/escape.h"

#include <algorithm>

#include "base/utf8.h"

namespace perseus::report {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

/// Removes the next code point of `text` and returns it; U+FFFD for bytes that are not UTF-8 and for noncharacters.
char32_t take_code_point(std::string_view& text) {
  const CodePoint point = first_code_point(text);
  text.remove_prefix(std::max<std::size_t>(point.bytes, 1));
  return point.bytes == 0 || point.value == 0xFFFE || point.value == 0xFFFF ? kReplacement : point.value;
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    switch (const char32_t c = take_code_point(text)) {
      case U'&':
        out += "&amp;";
        break;
      case U'<':
        out += "&lt;";
        break;
      case U'>':
        out += "&gt;";
        break;
      case U'"':
        out += "&quot;";
        break;
      case U'\'':
        out += "&#39;";
        break;
      case U'\t':
      case U'\n':
        out += ' ';
        break;
      default:
        append_utf8(out, c < 0x20 || (c >= 0x7F && c < 0xA0) ? kReplacement : c);
    }
  }
  return out;
}

}  // namespace perseus::report
