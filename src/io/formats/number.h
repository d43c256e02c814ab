// Numbers in text, complete or not at all. Locale does not matter.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace perseus::formats {

// Upper bounds of values in files: far beyond any cluster, and small enough to avoid arithmetic overflow.

inline constexpr int kMaxStage = 65'535;
inline constexpr int kMaxMicrobatch = (1 << 20) - 1;
inline constexpr int kMaxFrequency_mhz = 1'000'000;
inline constexpr double kMaxTime_s = 1e6;
inline constexpr double kMaxEnergy_j = 1e15;

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
