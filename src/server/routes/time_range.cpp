#include "server/routes/time_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "server/savings/job_history.h"

namespace perseus::routes {
namespace {

constexpr std::string_view kTimes = "seconds since 1970";
constexpr double kLatest_s = 1e11;

}  // namespace

Result<TimeRange> time_range(Parameters& parameters, std::string_view end, std::size_t most, double now_s) {
  const std::string limits = fmt::format("a number of steps from 1 to {}", most);
  const std::string step = parameters.text("step").value_or("minute");
  const auto from_s = parameters.take<double>("from", kTimes);
  const auto until_s = parameters.take<double>(end, kTimes);
  const auto limit = parameters.take<std::size_t>("limit", limits).value_or(most);
  if (const auto error = parameters.error()) return *error;
  const auto step_s = savings::step_named(step);
  if (!step_s) return wrong_parameter("step", step, savings::kStepNames);
  if (limit < 1 || limit > most) return wrong_parameter("limit", std::to_string(limit), limits);
  if (from_s && *from_s > kLatest_s) return wrong_parameter("from", *parameters.text("from"), kTimes);
  if (until_s && *until_s > kLatest_s) return wrong_parameter(end, *parameters.text(end), kTimes);
  if (from_s && until_s && *from_s > *until_s) {
    return wrong_parameter("from", *parameters.text("from"),
                           fmt::format("a time before '{}', which is {}", end, *parameters.text(end)));
  }
  TimeRange range{*step_s, 0, static_cast<std::int64_t>(std::ceil(until_s.value_or(now_s + 1))), limit};
  const std::int64_t longest_s = (*step_s == store::kMinute_s ? 1 : 366) * savings::kDay_s;
  const double default_s = std::max(0.0, static_cast<double>(range.until_s - longest_s));
  const auto begin_s = static_cast<std::int64_t>(from_s.value_or(default_s));
  range.from_s = begin_s - begin_s % range.step_s;
  return range;
}

}  // namespace perseus::routes
