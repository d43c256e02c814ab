// The two axes of a plot: ranges, positions, grid, clipping.
//
// Input:   the plotted values in any units, and the plot's edges.
// Output:  positions in drawing units, y downwards; the grid with its labels as SVG.
// Errors:  none; values that are not finite do not count. Without values, both axes run from 0 to 1.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace perseus::report {

/// Edges of the plotted area within a drawing.
struct AxesFrame {
  double left, right, top, bottom;
};

struct ChartPoint {
  double x, y;
};

class Axes {
 public:
  explicit Axes(const AxesFrame& frame) : frame_(frame) {}

  void include_x(double value) { x_.include(value); }
  void include(const ChartPoint& point);
  /// Adds a margin of 5 % around the values; call after the last include().
  void add_margin();

  /// Position of a value, which may lie outside of the frame.
  [[nodiscard]] ChartPoint position(const ChartPoint& value) const;
  /// The part of a segment of positions that lies within the frame.
  [[nodiscard]] std::optional<std::pair<ChartPoint, ChartPoint>> clipped(ChartPoint from, ChartPoint to) const;
  [[nodiscard]] const AxesFrame& frame() const { return frame_; }
  [[nodiscard]] std::string grid() const;

 private:
  struct Range {
    double low = INFINITY, high = -INFINITY;
    void include(double value);
    void add_margin();
    [[nodiscard]] double share(double value) const { return (value - low) / (high - low); }
  };

  AxesFrame frame_;
  Range x_, y_;
};

}  // namespace perseus::report
