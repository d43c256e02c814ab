// The look of a curve: its color, dashes and marker.
//
// Problem: a method has one color in all charts, and two curves differ without color too.
// Input:   a method's name as in `perseus compare --methods`, or "bound".
// Output:  the method's look; only Perseus' own plans ("exact") have a solid line. Other names, such as those of
//          configurations, look like the method at their position, so that the first one is solid.
#pragma once

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

}  // namespace perseus::report
