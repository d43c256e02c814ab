// Ends a controller and checks that the clock is given back as early as its header promises.
#pragma once

#include <chrono>
#include <memory>

#include "tests/support/eventually.h"
#include "training/clock_control/clock_controller.h"

namespace perseus::clock_control {

/// The end waits for the helper, but a second at most: the clock is back then, or soon after a wait of that second.
template <class IsBack>
[[nodiscard]] bool gives_back(std::unique_ptr<ClockController>& controller, IsBack is_back) {
  const auto began = std::chrono::steady_clock::now();
  controller.reset();
  const bool waited = std::chrono::steady_clock::now() - began >= std::chrono::seconds(1);
  return is_back() || (waited && testing::eventually(is_back));
}

}  // namespace perseus::clock_control
