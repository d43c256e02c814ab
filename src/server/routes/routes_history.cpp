// Calls of /v1 about the history of a job, and of all jobs.
#include <utility>

#include "base/json_writer.h"
#include "server/routes/call_input.h"
#include "server/savings/job_history.h"

namespace perseus::routes {
namespace {

constexpr std::size_t kMostBuckets = 2000;

Result<savings::HistoryQuery> history_query(std::string job, const http::HttpRequest& request, double now_s) {
  Parameters parameters(request);
  const auto range = time_range(parameters, "to", kMostBuckets, now_s);
  if (!range) return range.error();
  return savings::HistoryQuery{std::move(job), range->step_s, range->from_s, range->until_s, range->limit};
}

}  // namespace

void Api::history(Call call) {
  const auto query = history_query(call.parts[0], call.request, clock_.now_s());
  if (!query) return call.fail(query.error());
  service_.history.history(*query, then<savings::HistoryView>(call, json_text<savings::HistoryView>));
}

void Api::cluster_history(Call call) {
  auto query = history_query(std::string(store::kAllJobs), call.request, clock_.now_s());
  if (!query) return call.fail(query.error());
  // The same query from all readers of this moment.
  query->to_s += query->step_s - 1 - (query->to_s - 1) % query->step_s;
  service_.history.history(*query, then<savings::HistoryView>(call, [](const savings::HistoryView& view) {
    return json_text(savings::cluster_history(view));
  }));
}

}  // namespace perseus::routes
