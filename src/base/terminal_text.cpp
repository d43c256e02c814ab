#include "base/terminal_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace perseus {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

CodePoint first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < least[bytes] || value > 0x10ffff || is_surrogate) return {};
  return {value, bytes};
}

bool acts_on_a_terminal(std::uint32_t c) {
  const bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c <= 0x9f);
  const bool bidirectional =
      c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return control || bidirectional || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const CodePoint c = first_of(text);
    if (c.bytes == 0 || (c.bytes == 1 && acts_on_a_terminal(c.value))) {
      fmt::format_to(std::back_inserter(safe), "\\x{:02x}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    if (acts_on_a_terminal(c.value)) {
      fmt::format_to(std::back_inserter(safe), "\\u{:04x}", c.value);
    } else {
      safe += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return safe;
}

}  // namespace perseus
