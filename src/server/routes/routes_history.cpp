// Calls of /v1 about the history of a job, and of all jobs.
#include <cmath>
#include <utility>

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

Result<jobs::HistoryQuery> history_query(std::string job, const http::HttpRequest& request, double now_s) {
  Parameters parameters(request);
  const std::string step = parameters.text("step").value_or("minute");
  const auto from_s = parameters.take<double>("from", kTimes);
  const auto to_s = parameters.take<double>("to", kTimes);
  const auto limit = parameters.take<std::size_t>("limit", kBucketLimits).value_or(kMostBuckets);
  if (const auto error = parameters.error()) return *error;
  const auto step_s = jobs::step_named(step);
  if (!step_s) return wrong_parameter("step", step, jobs::kStepNames);
  if (limit < 1 || limit > kMostBuckets) { return wrong_parameter("limit", std::to_string(limit), kBucketLimits); }
  for (const auto& [name, value] : {std::pair("from", from_s), std::pair("to", to_s)}) {
    if (value && *value > kLatest_s) return wrong_parameter(name, *request.parameter(name), kTimes);
  }
  jobs::HistoryQuery query;
  query.job = std::move(job);
  query.step_s = *step_s;
  query.limit = limit;
  // The step that has begun at this moment is the last one.
  query.to_s = static_cast<std::int64_t>(std::ceil(to_s.value_or(now_s + 1)));
  const std::int64_t longest_s = *step_s == store::kMinute_s ? jobs::kDay_s : kYear_s;
  const double default_s = std::max(0.0, static_cast<double>(query.to_s - longest_s));
  const auto begin_s = static_cast<std::int64_t>(from_s.value_or(default_s));
  query.from_s = begin_s - begin_s % query.step_s;
  return query;
}

}  // namespace

void Api::history(Call call) {
  const auto query = history_query(call.parts[0], call.request, clock_.now_s());
  if (!query) return call.fail(query.error());
  service_.history(*query, then<jobs::HistoryView>(call, json_text<jobs::HistoryView>));
}

void Api::cluster_history(Call call) {
  auto query = history_query(std::string(store::kAllJobs), call.request, clock_.now_s());
  if (!query) return call.fail(query.error());
  // The same query from all readers of this moment.
  query->to_s += query->step_s - 1 - (query->to_s - 1) % query->step_s;
  service_.history(*query, then<jobs::HistoryView>(call, [](const jobs::HistoryView& view) {
    return json_text(jobs::cluster_history(view));
  }));
}

}  // namespace perseus::routes
