#include "base/job_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace perseus {
namespace {

Error usage(std::string message) { return {ErrorCode::usage, std::move(message)}; }

/// Control characters (C0, DEL, C1), line separators, and bidirectional controls. Also invisible ones, with which two
/// names look the same: joiners are allowed only where they join, after letters of other scripts and emoji. Also U+FFFE
/// and U+FFFF, which are noncharacters and would not survive the log.
bool has_hidden_characters(std::string_view text) {
  char32_t before = 0;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.bytes == 0 || changes_display(c.value) || c.value == 0xFFFE || c.value == 0xFFFF) return true;
    if (is_invisible(c.value)) return true;
    constexpr char32_t first_beyond_latin = 0x250;
    if (is_joiner(c.value) && before < first_beyond_latin) return true;
    before = c.value;
    text.remove_prefix(c.bytes);
  }
  return false;
}

std::string shown(std::string_view text) { return valid_utf8(text.substr(0, 2 * kMaxLabelWord)); }

}  // namespace

Status check_text(const std::string& what, std::string_view text, std::size_t most) {
  if (text.size() > most) return usage(fmt::format("{}: {} bytes; allowed: {}", what, text.size(), most));
  if (has_hidden_characters(text)) {
    return usage(fmt::format("{}: must be UTF-8 without control or invisible characters", what));
  }
  return Ok{};
}

Status check_job_name(const std::string& what, std::string_view name) {
  if (Status text = check_text(what, name, kMaxJobText); !text) return text;
  if (!name.empty() && name.find_first_not_of(' ') == std::string_view::npos) {
    return usage(fmt::format("{}: '{}'; allowed: a name that is not only spaces, or none", what, name));
  }
  return Ok{};
}

Status check_fact(const std::string& key, std::string_view value) {
  if (Status named = check_text("facts", key, kMaxJobText); !named) return named;
  if (key.starts_with(kOwnFacts)) {
    return usage(
        fmt::format("facts: '{}'; allowed: names that do not begin with '{}', as the server's own do", key, kOwnFacts));
  }
  return check_text("facts." + key, value, kMaxJobText);
}

bool is_label_word(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/:+@").find(c) != std::string_view::npos;
  };
  return text.size() <= kMaxLabelWord && std::ranges::all_of(text, allowed);
}

Status check_label(const std::string& name, std::string_view value) {
  if (!name.empty() && is_label_word(name) && is_label_word(value)) return Ok{};
  return usage(
      fmt::format("labels: '{}={}'; allowed: a name of 1 to {} and a value of at most {} letters, digits and "
                  ". _ - / : + @",
                  shown(name), shown(value), kMaxLabelWord, kMaxLabelWord));
}

}  // namespace perseus
