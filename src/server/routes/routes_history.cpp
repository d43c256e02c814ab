// The call of /v1 about a job's history.
#include <cmath>

#include "base/json_writer.h"
#include "server/jobs/job_history.h"
#include "server/routes/call_input.h"

namespace perseus::routes {
namespace {

constexpr std::size_t kMostBuckets = 2000;
constexpr std::string_view kBucketLimits = "a number of steps from 1 to 2000";
constexpr std::string_view kTimes = "seconds since 1970";
constexpr double kLatest_s = 1e11;
constexpr std::int64_t kYear_s = 366 * jobs::kDay_s;

}  // namespace

void Api::history(Call call) {
  Parameters parameters(call.request);
  const std::string step = parameters.text("step").value_or("minute");
  const auto from_s = parameters.take<double>("from", kTimes);
  const auto to_s = parameters.take<double>("to", kTimes);
  const auto limit = parameters.take<std::size_t>("limit", kBucketLimits).value_or(kMostBuckets);
  if (const auto error = parameters.error()) return call.fail(*error);
  const auto step_s = jobs::step_named(step);
  if (!step_s) return call.fail(wrong_parameter("step", step, jobs::kStepNames));
  if (limit < 1 || limit > kMostBuckets) {
    return call.fail(wrong_parameter("limit", std::to_string(limit), kBucketLimits));
  }
  for (const auto& [name, value] : {std::pair("from", from_s), std::pair("to", to_s)}) {
    if (value && *value > kLatest_s) return call.fail(wrong_parameter(name, *call.request.parameter(name), kTimes));
  }
  jobs::HistoryQuery query;
  query.job = call.parts[0];
  query.step_s = *step_s;
  query.limit = limit;
  // The step that has begun at this moment is the last one.
  query.to_s = static_cast<std::int64_t>(std::ceil(to_s.value_or(clock_.now_s() + 1)));
  const std::int64_t longest_s = *step_s == store::kMinute_s ? jobs::kDay_s : kYear_s;
  const double default_s = std::max(0.0, static_cast<double>(query.to_s - longest_s));
  const auto begin_s = static_cast<std::int64_t>(from_s.value_or(default_s));
  query.from_s = begin_s - begin_s % query.step_s;
  service_.history(query, then<jobs::HistoryView>(call, json_text<jobs::HistoryView>));
}

}  // namespace perseus::routes
