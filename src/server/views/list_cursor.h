// What a page of a list has, and a cursor of a list that is ordered by time, as text:
// "1700000000.25,plan_not_kept,j_...".
//
// Input:   the time of a row, and the names that tell rows of that time apart; only the last name may contain commas.
// Output:  text(): the cursor; parse(): the same values again.
// Errors:  parse(): nothing for text with fewer names, or without a finite time.
// Cost:    linear in the text.
// Threads: plain values.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::views {

struct ListCursor {
  double time_s = 0;
  std::vector<std::string> names;

  [[nodiscard]] std::string text() const;
  static std::optional<ListCursor> parse(std::string_view text, std::size_t names);
};

/// Of a page: at most `limit` rows that are wanted, from the one after that place on.
template <class Place, class... Row>
struct ListQuery {
  std::size_t limit = 0;
  std::optional<Place> after;
  std::function<bool(const Row&...)> wanted;  ///< empty: every row
};

}  // namespace perseus::views
