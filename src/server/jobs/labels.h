// Labels of a job, and selectors that choose jobs by them.
//
// Input:   labels: names and values of letters, digits and . _ - / : + @; a selector: conditions separated by commas:
//          "team=vision,model!=gpt3,gang" (gang: any value); empty: all jobs.
// Output:  a job is selected if all conditions hold. A job without the label fulfills "team!=x".
// Errors:  usage, with the allowed forms and limits.
// Cost:    linear.
// Threads: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace perseus::jobs {

using Labels = std::map<std::string, std::string>;

Status check_labels(const Labels& labels);

struct LabelCondition {
  std::string name;
  std::optional<std::string> value;  ///< nothing: any
  bool is_equal = true;              ///< false: another value, or no such label
};
using Selector = std::vector<LabelCondition>;

Result<Selector> parse_selector(std::string_view text);
bool selects(const Selector& selector, const Labels& labels);

}  // namespace perseus::jobs
