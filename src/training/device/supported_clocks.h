// Choosing among the clocks that a device has.
//
// Cost:    O(clocks).
#pragma once

#include <algorithm>
#include <vector>

namespace perseus::device {

/// The highest of these clocks, which are highest first, that is not above `limit`; the lowest if all are. `limit`
/// itself if no clock is known.
template <class Clock>
Clock highest_within(const std::vector<Clock>& clocks, Clock limit) {
  if (clocks.empty()) return limit;
  const auto found = std::ranges::find_if(clocks, [&limit](const Clock& clock) { return clock <= limit; });
  return found == clocks.end() ? clocks.back() : *found;
}

}  // namespace perseus::device
