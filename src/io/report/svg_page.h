// The common parts of all drawings: the SVG element with title, description and style sheet; boxes and text.
//
// Colors are plain class rules with a prefers-color-scheme override (no CSS variables), since viewers other than
// browsers do not support these. A drawing shrinks to the page when it is printed, in the colors of light pages.
#pragma once

#include <string>
#include <string_view>

namespace perseus::report {

/// Number of power classes p0..p(N-1) in the style sheet.
inline constexpr int kSvgPowerClasses = 24;
/// Number of series classes q0..q(N-1), which set stroke and fill; io/report/series_look.h chooses among them.
inline constexpr int kSvgSeriesClasses = 8;

/// The opening of a drawing `width` by `height` units large, up to and including its background.
std::string open_svg(double width, double height, std::string_view title, std::string_view description);
/// Width of a chart, and the distance of its text from the edge.
inline constexpr double kChartWidth = 900, kChartMargin = 16;
/// An estimate that is at least as wide as most texts of 13 px.
double text_width(std::string_view text);

/// A rectangle; the tooltip may be empty. A width or height below 0 counts as 0.
struct SvgBox {
  double x, y, width, height;
};
std::string svg_box(std::string_view css_class, const SvgBox& box, std::string_view tooltip = {});
/// An invisible circle that shows a tooltip: larger than the marker below it, so that it is easy to point at.
std::string svg_hit_circle(double x, double y, double radius, std::string_view tooltip);
/// <text class="..." x y text-anchor> with the text escaped.
std::string svg_text(double x, double y, std::string_view anchor, std::string_view css_class, std::string_view text);

}  // namespace perseus::report
