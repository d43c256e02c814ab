#include "io/report/series_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perseus::report {
namespace {

struct NamedLook {
  std::string_view name;
  SeriesLook look;
};
constexpr std::array kLooks{NamedLook{"exact", {0, "", Marker::circle}},
                            NamedLook{"perseus", {1, "7 4", Marker::square}},
                            NamedLook{"envpipe", {2, "4 2", Marker::star}},
                            NamedLook{"zeus-global", {3, "8 2 2 2 2 2", Marker::cross}},
                            NamedLook{"zeus-per-stage", {4, "3 1", Marker::inverted_triangle}},
                            NamedLook{"all-max", {5, "1 2 5 2", Marker::triangle}},
                            NamedLook{"min-energy", {6, "6 1", Marker::diamond}},
                            NamedLook{"bound", {7, "5 4", Marker::circle}}};
constexpr int kMethods = static_cast<int>(kLooks.size()) - 1;  // without the bound

std::string cross(double x, double y, double r) {
  return fmt::format("M{0:.1f} {1:.1f}l{2:.2f} {2:.2f}M{0:.1f} {3:.1f}l{2:.2f} -{2:.2f}", x - r, y - r, 2 * r, y + r);
}

}  // namespace

SeriesLook look_of(std::string_view method, int position) {
  const auto* named = std::ranges::find(kLooks, method, &NamedLook::name);
  return named != kLooks.end() ? named->look : kLooks[position % kMethods].look;
}

SeriesLook variant_of(const SeriesLook& look) { return {look.color, "1.5 3", Marker::circle}; }

std::string marker_path(Marker marker, double x, double y, double r) {
  switch (marker) {
    case Marker::circle:
      return fmt::format("M{:.1f} {:.1f}a{:.2f} {:.2f} 0 1 0 .01 0z", x, y - r, r, r);
    case Marker::square:
      return fmt::format("M{:.1f} {:.1f}h{:.2f}v{:.2f}h-{:.2f}z", x - r, y - r, 2 * r, 2 * r, 2 * r);
    case Marker::star:
      return cross(x, y, r) +
             fmt::format("M{:.1f} {:.1f}v{:.2f}M{:.1f} {:.1f}h{:.2f}", x, y - r, 2 * r, x - r, y, 2 * r);
    case Marker::triangle:
      return fmt::format("M{:.1f} {:.1f}l{:.2f} {:.2f}h-{:.2f}z", x, y - r, r, 2 * r, 2 * r);
    case Marker::inverted_triangle:
      return fmt::format("M{:.1f} {:.1f}l{:.2f} -{:.2f}h-{:.2f}z", x, y + r, r, 2 * r, 2 * r);
    case Marker::cross:
      return cross(x, y, r);
    case Marker::diamond:
      break;
  }
  return fmt::format("M{0:.1f} {1:.1f}l{2:.2f} {2:.2f}l-{2:.2f} {2:.2f}l-{2:.2f} -{2:.2f}z", x, y - r, r);
}

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
