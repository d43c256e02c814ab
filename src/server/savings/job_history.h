// The answer to a request for the history of a job or of all jobs: measured against planned, by minute, hour or day.
//
// Input:   rows of the store, and a query.
// Output:  one bucket per step in which iterations were reported, in order; a step without reports has none. Rows of
//          servers that followed each other, and shorter steps, add up.
// Errors:  none.
// Cost:    O(log) per row.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/history_row.h"

namespace perseus::savings {

inline constexpr std::int64_t kDay_s = 86400;

struct HistoryQuery {
  std::string job;                         ///< or store::kAllJobs
  std::int64_t step_s = store::kMinute_s;  ///< kMinute_s, kHour_s or kDay_s
  std::int64_t from_s = 0, to_s = 0;       ///< steps that begin within [from_s, to_s)
  std::size_t limit = 1500;
  bool operator==(const HistoryQuery&) const = default;
};

struct HistoryBucket {
  std::int64_t start_s = 0;
  store::HistoryFigures figures;
  bool operator==(const HistoryBucket&) const = default;
};

struct HistoryView {
  std::int64_t step_s = 0;
  std::vector<HistoryBucket> buckets;
  std::optional<std::int64_t> next_s;  ///< start of the first bucket beyond the limit; nothing: no more
};

/// The history of all jobs: sums, because means over iterations of different jobs say nothing.
struct ClusterHistory {
  struct Bucket {
    std::int64_t start_s = 0;
    store::HistoryFigures figures;  ///< of store::kAllJobs
  };
  std::int64_t step_s = 0;
  std::vector<Bucket> buckets;
  std::optional<std::int64_t> next_s;
};
ClusterHistory cluster_history(const HistoryView& view);

HistoryView history_view(const HistoryQuery& query, const std::vector<store::HistoryRow>& rows);
/// Name of a step in the API; nothing for another one.
std::optional<std::int64_t> step_named(std::string_view name);
inline constexpr std::string_view kStepNames = "minute, hour or day";

/// Members for base/json_writer.h; those that are not known are left out.
void describe(auto& f, const HistoryBucket& bucket) {
  const store::HistoryFigures& of = bucket.figures;
  const auto mean = [](double sum, std::int64_t count) {
    return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
  };
  const auto known = [](std::int64_t version) { return version > 0 ? std::optional(version) : std::nullopt; };
  f.always("start_s", bucket.start_s);
  f.always("iterations", of.iterations);
  f("iteration_time_s", mean(of.time_s, of.iterations));
  f("least_time_s", of.iterations > 0 ? std::optional(of.least_s) : std::nullopt);
  f("most_time_s", of.iterations > 0 ? std::optional(of.most_s) : std::nullopt);
  f.always("energy_iterations", of.energy_iterations);
  f("iteration_energy_j", mean(of.energy_j, of.energy_iterations));
  f.always("planned_iterations", of.planned_iterations);
  f("planned_time_s", mean(of.planned_s, of.planned_iterations));
  f("planned_energy_j", mean(of.planned_j, of.planned_iterations));
  f.always("straggler_iterations", of.straggler_iterations);
  f("first_plan_version", known(of.first_version));
  f("last_plan_version", known(of.last_version));
}
void describe(auto& f, const HistoryView& view) {
  f.always("step_s", view.step_s);
  f.always("buckets", view.buckets);
  f("next_s", view.next_s);
}

void describe(auto& f, const ClusterHistory::Bucket& bucket) {
  f.always("start_s", bucket.start_s);
  f.always("iterations", bucket.figures.iterations);
  f.always("compared_iterations", bucket.figures.energy_iterations);
  f.always("energy_j", bucket.figures.energy_j);
  f.always("planned_energy_j", bucket.figures.planned_j);
}
void describe(auto& f, const ClusterHistory& history) {
  f.always("step_s", history.step_s);
  f.always("buckets", history.buckets);
  f("next_s", history.next_s);
}

}  // namespace perseus::savings
