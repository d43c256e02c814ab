// The part of a history that a request asks for.
//
// Input:   the query parameters `step`, `from`, the end and `limit`; times in seconds since 1970.
// Output:  steps that begin within [from, until). Without times: the last day in minutes, the last year in longer ones;
//          the step that has begun at this moment is the last one.
// Errors:  usage: the first parameter that is wrong, also of those that were taken before, and one that no call takes.
// Threads: pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "server/routes/call_input.h"

namespace perseus::routes {

struct TimeRange {
  std::int64_t step_s = 0, from_s = 0, until_s = 0;
  std::size_t limit = 0;
};

/// `end`: the parameter's name. `most`: the greatest limit, which is the default.
Result<TimeRange> time_range(Parameters& parameters, std::string_view end, std::size_t most, double now_s);

}  // namespace perseus::routes
