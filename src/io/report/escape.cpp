#include "io/report/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace perseus::report {
namespace {

constexpr char32_t replacement = 0xFFFD;

/// The next code point of `text`, which is shortened by it; U+FFFD for what is no UTF-8.
char32_t take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const int more = lead < 0x80                   ? 0
                   : lead >= 0xC2 && lead < 0xE0 ? 1
                   : lead >= 0xE0 && lead < 0xF0 ? 2
                   : lead >= 0xF0 && lead < 0xF5 ? 3
                                                 : -1;
  if (more < 0) {
    text.remove_prefix(1);
    return replacement;
  }
  char32_t point = more == 0 ? lead : lead & (0x3F >> more);
  for (int i = 1; i <= more; ++i) {
    if (i >= static_cast<int>(text.size()) || (byte(i) & 0xC0) != 0x80) {
      text.remove_prefix(i);
      return replacement;
    }
    point = point << 6 | (byte(i) & 0x3F);
  }
  text.remove_prefix(more + 1);
  constexpr char32_t least[] = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xD800 && point < 0xE000;
  const bool no_character = point == 0xFFFE || point == 0xFFFF;
  return point < least[more] || surrogate || no_character || point > 0x10FFFF ? replacement : point;
}

void append_utf8(std::string& out, char32_t point) {
  const auto put = [&](char32_t bits) { out += static_cast<char>(bits); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6), put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12), put(0x80 | (point >> 6 & 0x3F)), put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | point >> 18), put(0x80 | (point >> 12 & 0x3F)), put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  }
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
        append_utf8(out, c < 0x20 || (c >= 0x7F && c < 0xA0) ? replacement : c);
    }
  }
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  // A profile is a hundred kilobytes of plain text: it is copied in runs.
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
