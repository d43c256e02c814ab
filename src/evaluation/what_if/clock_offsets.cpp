#include "evaluation/what_if/clock_offsets.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/median.h"
#include "evaluation/what_if/traced_job.h"

namespace perseus::what_if {
namespace {

using trace::SpanKind;
using Late = std::map<std::pair<int, int>, std::vector<double>>;  // by pipeline and rank: over steps

constexpr double kLeastOffset = 0.002, kLeastStart = 0.02;  ///< of a step, by collectives and by starts
constexpr double kLeastSpreads = 4;                         ///< median distances from the median

/// Adds how much later each pipeline is than the usual one. `rank` is that of the results.
void add_late(const std::map<int, double>& times, int rank, Late& late) {
  if (times.size() < 2) return;
  std::vector<double> all;
  for (const auto& [pipeline, time] : times) all.push_back(time);
  const double usual = lower_median(std::move(all));
  for (const auto& [pipeline, time] : times) late[{pipeline, rank}].push_back(time - usual);
}

/// The median; 0 if it is within the steps' own spread.
double offset_of(const std::vector<double>& late) {
  const double by = median(late);
  std::vector<double> distances;
  for (const double l : late) distances.push_back(std::abs(l - by));
  return std::abs(by) > kLeastSpreads * median(std::move(distances)) ? by : 0;
}

Late by_collectives(const TracedJob& job) {
  Late late;
  for (const TracedStep& step : job.steps) {
    std::map<std::pair<SpanKind, int>, std::map<int, double>> ends;  // by kind and rank: of pipelines
    for (int d = 0; d < job.pipelines; ++d) {
      for (int r = 0; r < job.ranks; ++r) {
        const RankStep& rank = step.pipelines[d].ranks[r];
        for (const auto* const list : {&rank.before, &rank.after}) {
          for (const TracedCollective& c : *list) {
            if (c.kind != SpanKind::parameter_gather && c.kind != SpanKind::gradient_reduce) continue;
            double& end = ends[{c.kind, r}].try_emplace(d, -HUGE_VAL).first->second;
            end = std::max(end, c.start_s + c.duration_s);
          }
        }
      }
    }
    for (const auto& [group, of_pipelines] : ends) add_late(of_pipelines, group.second, late);
  }
  return late;
}

Late by_starts(const TracedJob& job) {
  Late late;
  for (const TracedStep& step : job.steps) {
    std::map<int, double> starts;
    for (int d = 0; d < job.pipelines; ++d) {
      double& start = starts[d] = HUGE_VAL;
      for (const RankStep& rank : step.pipelines[d].ranks) start = std::min(start, rank.ops.front().start_s);
    }
    add_late(starts, -1, late);
  }
  return late;
}

void move_rank(TracedJob& job, int pipeline, int rank, double by) {
  for (TracedStep& step : job.steps) {
    RankStep& r = step.pipelines[pipeline].ranks[rank];
    r.start_s += by, r.end_s += by;
    for (TracedOp& op : r.ops) op.start_s += by;
    for (auto* const list : {&r.before, &r.after}) {
      for (TracedCollective& c : *list) c.start_s += by;
    }
  }
}

/// Usual time of a step of one rank: on its own clock.
double usual_length(const TracedJob& job) {
  std::vector<double> lengths;
  for (const TracedStep& step : job.steps) {
    const RankStep& rank = step.pipelines.front().ranks.front();
    lengths.push_back(rank.end_s - rank.start_s);
  }
  return median(std::move(lengths));
}

}  // namespace

std::vector<ClockOffset> align_clocks(TracedJob& job) {
  std::vector<ClockOffset> found;
  const double length = usual_length(job), least = kLeastOffset * length;
  const Late late = by_collectives(job);
  if (late.empty()) {
    for (const auto& [place, all] : by_starts(job)) {
      const double by = offset_of(all);
      if (std::abs(by) > kLeastStart * length) found.push_back({place.first, -1, by, false});
    }
    return found;
  }
  for (int d = 0; d < job.pipelines; ++d) {
    std::map<int, double> offsets;
    std::vector<double> all;
    for (int r = 0; r < job.ranks; ++r) {
      if (const auto of_rank = late.find({d, r}); of_rank != late.end())
        all.push_back(offsets[r] = offset_of(of_rank->second));
    }
    if (all.empty()) continue;
    const auto [first, last] = std::ranges::minmax(all);
    const double usual = median(std::move(all));
    const bool agree = last - first <= least;
    if (agree && std::abs(usual) > least) found.push_back({d, -1, usual});
    const bool told = agree || job.pipelines > 2;  // of two single ranks, either may be wrong
    for (int r = 0; r < job.ranks; ++r) {
      const double by = agree ? usual : offsets[r];
      if (std::abs(by) <= least) continue;
      if (!agree) found.push_back({d, r, by, told});
      if (told) move_rank(job, d, r, -by);
    }
  }
  return found;
}

}  // namespace perseus::what_if
