// A fitted number with its standard deviation.
//
// Threads: plain value.
#pragma once

namespace perseus::calibration {

template <class Quantity>
struct Fitted {
  Quantity value{};
  Quantity stddev{};  ///< 0: given, not fitted; or fixed at its bound
};

}  // namespace perseus::calibration
