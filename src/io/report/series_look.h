// The look of a curve: its color, dashes and marker.
//
// Problem: a method has one color in all charts, and two curves differ without color too.
// Input:   a method's name as in `perseus compare --methods`, or "bound".
// Output:  the method's look; only Perseus' own plans ("exact") have a solid line. Other names, such as those of
//          configurations, look like the method at their position, so that the first one is solid.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace perseus::report {

enum class Marker { circle, square, star, triangle, inverted_triangle, cross, diamond };

struct SeriesLook {
  int color = 0;              ///< series class of io/report/svg_page.h
  std::string_view dashes{};  ///< stroke-dasharray; empty: a solid line
  Marker marker = Marker::circle;
  [[nodiscard]] bool solid() const { return dashes.empty(); }
};

SeriesLook look_of(std::string_view method, int position = 0);
/// A second curve of the same method: in its color, with dots and circles.
SeriesLook variant_of(const SeriesLook& look);

/// Path data of a marker around (x, y), `radius` units large.
std::string marker_path(Marker marker, double x, double y, double radius);

// The colors for power: dark and light variants of one perceptually uniform ramp.
// The ramp is "inferno" (Smith & van der Walt, CC0): its lightness increases evenly, so that it is readable in gray
// and with any color vision. More power always means more contrast to the page: dark on a light page, bright on a
// dark one. The ends that would be invisible on the page are cut off. web/src/power-ramp.js is the same ramp (a test
// compares them).

enum class Theme { light, dark };

struct Rgb {
  std::uint8_t red, green, blue;
  [[nodiscard]] std::string hex() const;  ///< "#rrggbb"
};

inline constexpr std::array<Rgb, 10> kInfernoStops = {{{0x00, 0x00, 0x04},
                                                       {0x1b, 0x0c, 0x41},
                                                       {0x4a, 0x0c, 0x6b},
                                                       {0x78, 0x1c, 0x6d},
                                                       {0xa5, 0x2c, 0x60},
                                                       {0xcf, 0x44, 0x46},
                                                       {0xed, 0x69, 0x25},
                                                       {0xfb, 0x9b, 0x06},
                                                       {0xf7, 0xd1, 0x3d},
                                                       {0xfc, 0xff, 0xa4}}};

/// The color of `position` in 0..1 (see PowerRange::position).
Rgb power_color(double position, Theme theme);

}  // namespace perseus::report
