#include "command_line/closest_name.h"

#include <algorithm>

namespace perseus::cli {

int edits_between(std::string_view from, std::string_view to) {
  std::vector<std::vector<int>> edits(from.size() + 1, std::vector<int>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = static_cast<int>(i + j);
        continue;
      }
      const int replaced = edits[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      const bool exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (exchanged) edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits.back().back();
}

std::string closest_name(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 100;  // of a name
  if (word.size() > longest) return {};
  int least = std::max(1, static_cast<int>(word.size() / 3));
  std::string closest;
  for (const std::string& name : names) {
    const int edits = edits_between(word, name);
    if (edits < least || (edits == least && closest.empty())) {
      least = edits;
      closest = name;
    }
  }
  return closest;
}

}  // namespace perseus::cli
