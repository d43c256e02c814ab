// The common part of both drawings: the SVG element with title, description and colors for dark and light pages.
//
// Colors are plain class rules with a prefers-color-scheme override (no CSS variables), since viewers other than
// browsers do not support these.
//
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

namespace perseus::report {

/// Number of power classes p0..p(N-1) in the style sheet.
inline constexpr int kSvgPowerClasses = 24;
/// Number of series classes q0..q(N-1), for curves of different methods.
inline constexpr int kSvgSeriesClasses = 7;

/// The opening of a drawing `width` by `height` units large, up to and including its background.
std::string open_svg(double width, double height, std::string_view title, std::string_view description);
/// <text class="..." x y text-anchor> with the text escaped.
std::string svg_text(double x, double y, std::string_view anchor, std::string_view css_class, std::string_view text);

}  // namespace perseus::report
