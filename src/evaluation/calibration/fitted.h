// A number out of a fit, and how well the data determine it. Threads: plain value.
#pragma once

namespace perseus::calibration {

template <class Quantity>
struct Fitted {
  Quantity value{};
  Quantity stddev{};  ///< 0: given, not fitted; or held at its bound
};

}  // namespace perseus::calibration
