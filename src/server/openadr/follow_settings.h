// How a site answers a utility's events: the watts of levels, alerts and baselines that events only name.
//
// Units:   W as a meter of the domain reads them.
// Threads: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "base/units.h"

namespace perseus::openadr {

inline constexpr int kLevels = 4;  ///< of the payload SIMPLE, 0 (normal operations) included

struct FollowSettings {
  std::optional<Watts> baseline;                     ///< what DISPATCH_SETPOINT_RELATIVE is relative to
  std::array<std::optional<Watts>, kLevels> levels;  ///< of SIMPLE 1 to 3; [0] is not used
  std::optional<Watts> emergency;                    ///< of ALERT_GRID_EMERGENCY
  std::optional<Watts> default_limit;                ///< where neither a limit nor a subscription holds
  std::size_t most_steps = 1000;
  std::string signal;  ///< a payload that is followed as a signal (signal_steps.h), not as a limit; empty: none
};

}  // namespace perseus::openadr
