#include "base/terminal_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

#include "base/utf8.h"

namespace perseus {
namespace {

/// A newline and a tab only lay text out.
bool acts_on_a_terminal(char32_t c) { return c != U'\n' && c != U'\t' && changes_display(c); }

std::string without(bool (*is_unsafe)(char32_t), std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.bytes == 0 || (c.bytes == 1 && is_unsafe(c.value))) {
      fmt::format_to(std::back_inserter(safe), "\\x{:02x}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    if (is_unsafe(c.value)) {
      fmt::format_to(std::back_inserter(safe), "\\u{:04x}", static_cast<std::uint32_t>(c.value));
    } else {
      safe += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return safe;
}

}  // namespace

std::string terminal_text(std::string_view text) { return without(acts_on_a_terminal, text); }
std::string line_text(std::string_view text) { return without(changes_display, text); }

}  // namespace perseus
