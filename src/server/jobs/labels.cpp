#include "server/jobs/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/job_text.h"
#include "base/split.h"
#include "base/utf8.h"

namespace perseus::jobs {
namespace {

std::string shown(std::string_view text) { return valid_utf8(std::string(text.substr(0, 2 * kMaxLabelWord))); }

std::optional<LabelCondition> condition_of(std::string_view text) {
  const std::size_t equals = text.find('=');
  LabelCondition condition;
  std::string_view name = text.substr(0, equals);
  if (equals != std::string_view::npos) condition.value = text.substr(equals + 1);
  condition.is_equal = equals == std::string_view::npos || !name.ends_with('!');
  if (!condition.is_equal) name.remove_suffix(1);
  condition.name = name;
  if (name.empty() || !is_label_word(name) || !is_label_word(condition.value.value_or(""))) return std::nullopt;
  return condition;
}

}  // namespace

Status check_labels(const Labels& labels) {
  if (labels.size() > kMaxLabels) {
    return Error{ErrorCode::usage, fmt::format("labels: {} of them; allowed: {}", labels.size(), kMaxLabels)};
  }
  for (const auto& [name, value] : labels) {
    if (Status fits = check_label(name, value); !fits) return fits;
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
