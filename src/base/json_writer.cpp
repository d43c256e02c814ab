#include "base/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "base/utf8.h"

namespace perseus {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

/// `value` as that format and precision print it.
double printed(double value, std::chars_format format, int precision) {
  if (!std::isfinite(value)) return value;
  std::array<char, 512> digits;  // 1.8e308 has 309 before the point
  const auto [end, problem] =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, format, std::clamp(precision, 0, 100));
  double read = value;
  if (problem == std::errc()) std::from_chars(digits.data(), end, read);
  return read + 0.0;  // no -0
}

/// Removes the next code point of `text` and returns it.
char32_t take_code_point(std::string_view& text) {
  const CodePoint point = first_code_point(text);
  text.remove_prefix(std::max<std::size_t>(point.bytes, 1));
  return point.bytes == 0 ? kReplacement : point.value;
}

}  // namespace

double with_digits(double value, int digits) { return printed(value, std::chars_format::general, digits); }
double with_decimals(double value, int decimals) { return printed(value, std::chars_format::fixed, decimals); }

void append_json_number(std::string& out, double value) {
  // fmt's default is the shortest text that reads back the same: without exponent from 1e-4 to 1e16.
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out), "{}", value);
  } else {
    out += "null";
  }
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
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
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(c));
    } else {
      append_utf8(out, c);
    }
  }
  out += '"';
}

}  // namespace perseus
