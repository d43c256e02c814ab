// The name that a mistyped word probably means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perseus::cli {

/// How many characters must be inserted, deleted, replaced, or exchanged with their neighbor to turn one word into the
/// other (optimal string alignment). O(product of the lengths).
int edits_between(std::string_view from, std::string_view to);

/// The first name with the fewest edits from `word`, at most a third of its length, or one; empty: none is so
/// close.
std::string closest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace perseus::cli
