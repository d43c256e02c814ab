#include "server/views/list_cursor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "io/formats/number.h"

namespace perseus::views {

std::string ListCursor::text() const { return fmt::format("{},{}", time_s, fmt::join(names, ",")); }

std::optional<ListCursor> ListCursor::parse(std::string_view text, std::size_t names) {
  std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto time_s = formats::number_in<double>(text.substr(0, comma));
  if (!time_s || !std::isfinite(*time_s)) return std::nullopt;
  ListCursor cursor{*time_s, {}};
  for (text.remove_prefix(comma + 1); cursor.names.size() + 1 < names; text.remove_prefix(comma + 1)) {
    comma = text.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    cursor.names.emplace_back(text.substr(0, comma));
  }
  cursor.names.emplace_back(text);
  return cursor;
}

}  // namespace perseus::views
