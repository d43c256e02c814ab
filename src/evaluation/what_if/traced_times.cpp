#include "evaluation/what_if/traced_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/median.h"

namespace perseus::what_if {
namespace {

using model::Instruction;

constexpr std::size_t kMostSizes = 64;  ///< of messages, that are told apart
constexpr double kLeastUnequal = 1.2;   ///< the largest message over the smallest

/// Standard deviation of the groups' medians, as a share of `center`.
template <class Group>
double spread(const std::map<Group, std::vector<double>>& groups, double center) {
  std::vector<double> medians;
  for (const auto& [group, times] : groups) medians.push_back(median(times));
  const double middle = std::accumulate(medians.begin(), medians.end(), 0.0) / static_cast<double>(medians.size());
  double squares = 0;
  for (const double m : medians) squares += (m - middle) * (m - middle);
  return center > 0 ? std::sqrt(squares / static_cast<double>(medians.size())) / center : 0;
}

/// Sets the parts of a link's time; `transfers`: sizes, -1 if not known, and times.
void fit_link(std::vector<std::pair<double, double>> transfers, TransferTimes& link) {
  link.latency_s = link.median_s;
  std::ranges::sort(transfers);
  if (transfers.front().first < 0 || transfers.back().first < kLeastUnequal * transfers.front().first) return;
  std::vector<std::pair<double, double>> groups;  // of like sizes: mean size, median time
  const std::size_t per_group = std::max<std::size_t>(1, transfers.size() / kMostSizes);
  for (std::size_t first = 0; first < transfers.size(); first += per_group) {
    const std::size_t end = std::min(transfers.size(), first + per_group);
    std::vector<double> times;
    double bytes = 0;
    for (std::size_t i = first; i < end; ++i) {
      bytes += transfers[i].first / static_cast<double>(end - first);
      times.push_back(transfers[i].second);
    }
    groups.emplace_back(bytes, median(std::move(times)));
  }
  std::vector<double> slopes, rests;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t j = i + 1; j < groups.size(); ++j) {
      if (groups[j].first > groups[i].first)
        slopes.push_back((groups[j].second - groups[i].second) / (groups[j].first - groups[i].first));
    }
  }
  const double slope = median(std::move(slopes));
  if (slope <= 0) return;
  for (const auto& [bytes, time] : groups) rests.push_back(time - slope * bytes);
  link.latency_s = std::max(0.0, median(std::move(rests)));
  link.bytes_per_s = 1 / slope;
}

}  // namespace

std::vector<TypeTimes> type_times(const TracedJob& job) {
  struct Groups {
    std::vector<double> all;
    std::map<int, std::vector<double>> steps, microbatches, workers;
  };
  std::map<std::pair<int, Instruction>, Groups> types;
  for_each_op(job, [&](const TracedOp& op, TracedWorker worker, int s) {
    Groups& g = types[{op.action.stage, op.action.instruction}];
    g.all.push_back(op.duration_s);
    g.steps[job.steps[s].number].push_back(op.duration_s);
    g.microbatches[op.action.microbatch].push_back(op.duration_s);
    g.workers[worker.pipeline].push_back(op.duration_s);
  });
  std::vector<TypeTimes> result;
  for (const auto& [type, g] : types) {
    const double middle = median(g.all);
    std::vector<double> workers;
    for (const auto& [worker, times] : g.workers) workers.push_back(median(times));
    result.push_back({type.first, type.second, middle, lower_median(std::move(workers)), spread(g.steps, middle),
                      spread(g.microbatches, middle), spread(g.workers, middle)});
  }
  return result;
}

std::vector<TransferTimes> link_times(const TracedJob& job) {
  std::map<std::pair<int, bool>, std::vector<std::pair<double, double>>> transfers;
  for_each_op(job, [&](const TracedOp& op, TracedWorker, int) {
    const bool forward = op.action.instruction == Instruction::forward;
    if (op.receive_s <= 0) return;
    transfers[{forward ? op.action.stage - 1 : op.action.stage, !forward}].emplace_back(op.receive_bytes, op.receive_s);
  });
  std::vector<TransferTimes> links;
  for (const auto& [link, all] : transfers) {
    std::vector<double> times;
    for (const auto& [bytes, time] : all) times.push_back(time);
    links.push_back({link.first, !link.second, median(times), *std::ranges::max_element(times)});
    fit_link(all, links.back());
  }
  return links;
}

std::vector<std::optional<double>> times_until_next(const TracedJob& job) {
  std::vector<std::optional<double>> until_next(job.steps.size());
  double shortest_s = HUGE_VAL;
  for (const TracedStep& step : job.steps) shortest_s = std::min(shortest_s, step.time_s());
  for (std::size_t s = 0; s + 1 < job.steps.size(); ++s) {
    const double gap_s = job.steps[s + 1].start_s() - job.steps[s].end_s();
    const double between = static_cast<double>(job.steps[s + 1].number) - job.steps[s].number - 1;
    if (between > 0 && gap_s < between * shortest_s / 2) return std::vector<std::optional<double>>(job.steps.size());
    if (between == 0) until_next[s] = std::max(0.0, gap_s);
  }
  return until_next;
}

std::vector<Waiting> waiting_of(const TracedJob& job) {
  std::vector<Waiting> all;
  for (int d = 0; d < job.pipelines; ++d) {
    for (int r = 0; r < job.ranks; ++r) {
      Waiting waiting{{d, r}};
      for (const TracedStep& step : job.steps) {
        const RankStep& rank = step.pipelines[d].ranks[r];
        double computing = 0;
        for (const TracedOp& op : rank.ops) computing += op.duration_s;
        waiting.computing_s += computing;
        waiting.communicating_s += rank.communicating_s;
        waiting.waiting_s += std::max(0.0, step.time_s() - computing - rank.communicating_s);
      }
      const auto steps = static_cast<double>(job.steps.size());
      waiting.computing_s /= steps, waiting.communicating_s /= steps, waiting.waiting_s /= steps;
      all.push_back(waiting);
    }
  }
  return all;
}

}  // namespace perseus::what_if
