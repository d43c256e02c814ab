// The time and energy axes shared by drawings of frontiers.
//
// Input:   points in seconds and joules.
// Output:  their position in drawing units, y downwards, with a margin around the data; the grid with its labels as
//          SVG.
// Errors:  none.
// Threads: plain value.
#pragma once

#include <cmath>
#include <string>

#include "base/units.h"

namespace perseus::report {

/// Position of the axes within a drawing.
struct AxesFrame {
  double left, right, top, bottom;  ///< edges of the plotted area
};

class TimeEnergyAxes {
 public:
  explicit TimeEnergyAxes(const AxesFrame& frame) : frame_(frame) {}

  void include(Seconds t, Joules e);
  /// Adds the margin; call after the last include().
  void add_air();

  [[nodiscard]] double x(Seconds t) const {
    return frame_.left + (t.value() - t0_) / (t1_ - t0_) * (frame_.right - frame_.left);
  }
  [[nodiscard]] double y(Joules e) const {
    return frame_.bottom - (e.value() - e0_) / (e1_ - e0_) * (frame_.bottom - frame_.top);
  }
  [[nodiscard]] const AxesFrame& frame() const { return frame_; }
  [[nodiscard]] Seconds last_time() const { return Seconds(t1_); }
  [[nodiscard]] std::string grid() const;

 private:
  AxesFrame frame_;
  double t0_ = INFINITY, t1_ = -INFINITY, e0_ = INFINITY, e1_ = -INFINITY;
};

}  // namespace perseus::report
