#include "io/report/power_ramp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perseus::report {

std::string Rgb::hex() const { return fmt::format("#{:02x}{:02x}{:02x}", red, green, blue); }

Rgb power_color(double position, Theme theme) {
  const double from = theme == Theme::light ? 0.90 : 0.26;
  const double to = theme == Theme::light ? 0.10 : 1.00;
  const double at = (from + (to - from) * std::clamp(position, 0.0, 1.0)) * (kInfernoStops.size() - 1);
  const auto left = std::min(static_cast<std::size_t>(at), kInfernoStops.size() - 2);
  const double part = at - static_cast<double>(left);
  const auto mix = [part](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + part * (b - a)));
  };
  const Rgb &a = kInfernoStops[left], &b = kInfernoStops[left + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

}  // namespace perseus::report
