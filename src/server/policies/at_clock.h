// What a computation takes where no clock is above a given one.
//
// Input:   the options of a type of computation, highest clock first; a clock in MHz.
// Output:  at_or_below(): the option of the highest clock that is allowed, the lowest one if none is. most_power():
//          the greatest mean power of all options that are allowed, or of the lowest one; options without a time have
//          none.
// Errors:  none.
// Cost:    O(options).
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <vector>

#include "planning/model/computation_dag.h"

namespace perseus::policies {

inline const model::Measurement& at_or_below(const std::vector<model::Measurement>& options, int clock_mhz) {
  const auto found = std::ranges::find_if(options, [&](const auto& one) { return one.clock.value() <= clock_mhz; });
  return found == options.end() ? options.back() : *found;
}

inline Watts most_power(const std::vector<model::Measurement>& options, int clock_mhz) {
  Watts most;
  for (const model::Measurement& option : options) {
    const bool allowed = option.clock.value() <= clock_mhz || &option == &options.back();
    if (allowed && option.time > Seconds(0)) most = std::max(most, option.energy / option.time);
  }
  return most;
}

}  // namespace perseus::policies
