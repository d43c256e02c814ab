// Numbers in text, complete or not at all. Locale does not matter.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace perseus::formats {

/// The number that is all of `text` (a leading + allowed), else nothing. Reads "nan" and "inf" as doubles.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace perseus::formats
