#include "io/report/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

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

std::string json_string(std::string_view text) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  // A profile is a hundred kilobytes of plain text: copy whole runs of it.
  const auto needs_a_look = [](unsigned char c) { return c < 0x20 || c == '"' || c == '\\' || c == '<' || c >= 0x7F; };
  while (true) {
    const auto plain = static_cast<std::size_t>(std::ranges::find_if(text, needs_a_look) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const char32_t c = take_code_point(text);
    if (c == U'"' || c == U'\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == U'<' || c == 0x7F || c == 0x2028 || c == 0x2029) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
    } else {
      append_utf8(out, c);
    }
  }
  return out += '"';
}

}  // namespace perseus::report
