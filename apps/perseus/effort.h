// The planner's effort by the name that --effort takes. Input: "low", "normal" or "high", as CLI11 has checked.
#pragma once

#include <string_view>

#include "planner/exact.h"

namespace perseus {

inline Effort effort_named(std::string_view name) {
  return name == "low" ? Effort::low : name == "high" ? Effort::high : Effort::normal;
}

}  // namespace perseus
