// State of the GPU's own power limit under a power budget, as the helper reports it.
//
// Source:  docs/decisions/0059-power-limit-as-backstop.md.
#pragma once

#include <cstdint>

namespace perseus::clock_control {

enum class BackstopState : std::uint32_t {
  none,      ///< not requested
  set,       ///< lowered by the helper
  needless,  ///< the limit that the GPU has is as low
  refused    ///< not set; there is a reason
};

}  // namespace perseus::clock_control
