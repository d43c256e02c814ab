#include "server/jobs/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/split.h"
#include "base/utf8.h"

namespace perseus::jobs {
namespace {

constexpr std::size_t kMaxLabels = 32;
constexpr std::size_t kMaxWord = 63;

bool is_word(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/:+@").find(c) != std::string_view::npos;
  };
  return text.size() <= kMaxWord && std::ranges::all_of(text, allowed);
}

std::string shown(std::string_view text) { return valid_utf8(std::string(text.substr(0, 2 * kMaxWord))); }

std::optional<LabelCondition> condition_of(std::string_view text) {
  const std::size_t equals = text.find('=');
  LabelCondition condition;
  std::string_view name = text.substr(0, equals);
  if (equals != std::string_view::npos) condition.value = text.substr(equals + 1);
  condition.is_equal = equals == std::string_view::npos || !name.ends_with('!');
  if (!condition.is_equal) name.remove_suffix(1);
  condition.name = name;
  if (name.empty() || !is_word(name) || !is_word(condition.value.value_or(""))) return std::nullopt;
  return condition;
}

}  // namespace

Status check_labels(const Labels& labels) {
  if (labels.size() > kMaxLabels) {
    return Error{ErrorCode::usage, fmt::format("labels: {} of them; allowed: {}", labels.size(), kMaxLabels)};
  }
  for (const auto& [name, value] : labels) {
    if (!name.empty() && is_word(name) && is_word(value)) continue;
    return Error{ErrorCode::usage,
                 fmt::format("labels: '{}={}'; allowed: a name of 1 to {} and a value of at most {} letters, digits "
                             "and . _ - / : + @",
                             shown(name), shown(value), kMaxWord, kMaxWord)};
  }
  return Ok{};
}

Result<Selector> parse_selector(std::string_view text) {
  Selector selector;
  if (text.empty()) return selector;
  for (const std::string_view part : split(text, ',')) {
    const auto condition = condition_of(part);
    if (!condition) {
      return Error{
          ErrorCode::usage,
          fmt::format("selector: '{}'; allowed: NAME=VALUE, NAME!=VALUE or NAME, separated by commas", shown(part))};
    }
    selector.push_back(*condition);
  }
  return selector;
}

bool selects(const Selector& selector, const Labels& labels) {
  return std::ranges::all_of(selector, [&](const LabelCondition& condition) {
    const auto found = labels.find(condition.name);
    const bool fits = found != labels.end() && (!condition.value || found->second == *condition.value);
    return fits == condition.is_equal;
  });
}

}  // namespace perseus::jobs
