// Readings of a site's meters, as POST /v1/site/meter takes them.
//
// Errors:  usage: the first member that is wrong, its value and what is allowed.
// Cost:    linear.
// Threads: plain values, pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace perseus::jobs {

struct MeterReading {
  std::string domain;
  double at_s = 0;  ///< since 1970; 0: now
  Watts power;
};

Result<std::vector<MeterReading>> parse_meter_readings(std::string_view text, const std::string& name);

}  // namespace perseus::jobs
