#include "server/savings/job_history.h"

#include <map>

namespace perseus::savings {

HistoryView history_view(const HistoryQuery& query, const std::vector<store::HistoryRow>& rows) {
  std::map<std::int64_t, store::HistoryFigures> sums;
  for (const store::HistoryRow& row : rows) {
    const std::int64_t start_s = row.start_s - row.start_s % query.step_s;
    if (row.step_s <= query.step_s && query.from_s <= start_s && start_s < query.to_s) sums[start_s].add(row.figures);
  }
  HistoryView view;
  view.step_s = query.step_s;
  for (const auto& [start_s, figures] : sums) {
    if (view.buckets.size() == query.limit) {
      view.next_s = start_s;
      break;
    }
    view.buckets.push_back({start_s, figures});
  }
  return view;
}

ClusterHistory cluster_history(const HistoryView& view) {
  ClusterHistory history{view.step_s, {}, view.next_s};
  for (const HistoryBucket& bucket : view.buckets) history.buckets.push_back({bucket.start_s, bucket.figures});
  return history;
}

std::optional<std::int64_t> step_named(std::string_view name) {
  if (name == "minute") return store::kMinute_s;
  if (name == "hour") return store::kHour_s;
  if (name == "day") return kDay_s;
  return std::nullopt;
}

}  // namespace perseus::savings
