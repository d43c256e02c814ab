#include "evaluation/what_if/slowdown_causes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/median.h"
#include "evaluation/what_if/shared_factors.h"

namespace perseus::what_if {
namespace {

using model::Instruction;

constexpr std::size_t kMostSizes = 64;  ///< of messages, that are told apart
constexpr double kLeastLost = 0.005;    ///< of a step: below, nobody is named
constexpr double kLeastUnequal = 1.2;   ///< the largest message over the smallest

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

template <class Visit>
void for_each_rank(const TracedJob& job, Visit visit) {
  for (const TracedStep& step : job.steps) {
    for (int d = 0; d < job.pipelines; ++d) {
      for (int r = 0; r < job.ranks; ++r) visit(step.pipelines[d].ranks[r], TracedWorker{d, r});
    }
  }
}

/// Standard deviation of the groups' medians, as a share of `center`.
template <class Group>
double spread(const std::map<Group, std::vector<double>>& groups, double center) {
  std::vector<double> medians;
  for (const auto& [group, times] : groups) medians.push_back(median(times));
  const double middle = mean(medians);
  double squares = 0;
  for (const double m : medians) squares += (m - middle) * (m - middle);
  return center > 0 ? std::sqrt(squares / static_cast<double>(medians.size())) / center : 0;
}

std::vector<TypeTimes> type_times(const TracedJob& job) {
  struct Groups {
    std::vector<double> all;
    std::map<int, std::vector<double>> steps, microbatches, workers;
  };
  std::map<std::pair<int, Instruction>, Groups> types;
  for (const TracedStep& step : job.steps) {
    for (int d = 0; d < job.pipelines; ++d) {
      for (const RankStep& rank : step.pipelines[d].ranks) {
        for (const TracedOp& op : rank.ops) {
          Groups& g = types[{op.action.stage, op.action.instruction}];
          g.all.push_back(op.duration_s);
          g.steps[step.number].push_back(op.duration_s);
          g.microbatches[op.action.microbatch].push_back(op.duration_s);
          g.workers[d].push_back(op.duration_s);
        }
      }
    }
  }
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

std::vector<TransferTimes> link_times(const TracedJob& job) {
  std::map<std::pair<int, bool>, std::vector<std::pair<double, double>>> transfers;
  for_each_rank(job, [&](const RankStep& rank, TracedWorker) {
    for (const TracedOp& op : rank.ops) {
      const bool forward = op.action.instruction == Instruction::forward;
      if (op.receive_s > 0)
        transfers[{forward ? op.action.stage - 1 : op.action.stage, !forward}].emplace_back(op.receive_bytes,
                                                                                            op.receive_s);
    }
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

/// A computation of one worker: stages of one rank count by themselves.
struct Key {
  int pipeline, rank, stage;
  Instruction instruction;
  auto operator<=>(const Key&) const = default;
};

class Explaining {
 public:
  explicit Explaining(const TracedJob& job) : job_(job), measured_(measured_times()), shared_(shared_factors(job)) {
    std::map<trace::SpanKind, std::vector<double>> collectives;
    std::map<Instruction, std::vector<double>> computations;
    std::vector<double> transfers;
    for_each_rank(job, [&](const RankStep& rank, TracedWorker) {
      for (const TracedOp& op : rank.ops) {
        if (op.receive_s > 0) transfers.push_back(op.receive_s);
        if (op.send_s > 0) transfers.push_back(op.send_s);
      }
      for (const auto* list : {&rank.before, &rank.after}) {
        for (const TracedCollective& c : *list) collectives[c.kind].push_back(c.duration_s);
      }
    });
    for (const auto& [kind, all] : collectives) ideal_collective_[kind] = median(all);
    if (!transfers.empty()) ideal_transfer_ = median(transfers);
    for (int s = 0; s < static_cast<int>(job.steps.size()); ++s) {
      for (int d = 0; d < job.pipelines; ++d) {
        for (int r = 0; r < job.ranks; ++r) {
          for (const TracedOp& op : job.steps[s].pipelines[d].ranks[r].ops) {
            times_[key_of(op, {d, r})].push_back(op.duration_s / shared_factor(op, {d, r}, s));
            computations[op.action.instruction].push_back(op.duration_s / shared_.drift_of(s));
          }
        }
      }
    }
    for (const auto& [instruction, all] : computations) ideal_compute_[instruction] = mean(all);
    for (const auto& [key, all] : times_) usual_[key] = median(all);
  }

  Slowdown run() {
    Slowdown result;
    result.types = type_times(job_);
    result.links = link_times(job_);
    for (const TracedStep& step : job_.steps) {
      result.measured_s += step.time_s() / static_cast<double>(job_.steps.size());
      result.step_s.push_back(replay_step(job_, step, measured_));
    }
    result.as_run_s = mean(result.step_s);
    std::vector<double> between;
    for (std::size_t s = 0; s < job_.steps.size(); ++s) {
      if (const auto gap = time_until_next(job_, s)) between.push_back(*gap);
    }
    if (!between.empty()) result.between_s = mean(between);
    for (int d = 0; d < job_.pipelines; ++d) {
      std::vector<double> spans;
      for (const TracedStep& step : job_.steps) spans.push_back(measured_span(step.pipelines[d]));
      result.pipeline_s.push_back(mean(spans));
    }
    StepTimes ideal = measured_;
    make_links_ideal(ideal);
    make_collectives_ideal(ideal);
    ideal.compute = [this](const TracedOp& op, TracedWorker) { return ideal_compute_.at(op.action.instruction); };
    result.ideal_s = replayed(ideal);
    const double lost = result.as_run_s - result.ideal_s, all_lost = result.measured_s - result.ideal_s;
    if (std::max(lost, all_lost) < kLeastLost * result.as_run_s) return result;
    for (SlowdownCause& cause : candidates()) {
      if (cause.kind == CauseKind::gaps) {
        cause.without_s = result.as_run_s;
        cause.share = all_lost > 0 ? (result.measured_s - result.as_run_s) / all_lost : 0;
      } else {
        cause.without_s = replayed_without(cause);
        cause.share = lost > 0 ? (result.as_run_s - cause.without_s) / lost : 0;
      }
      if (cause.share >= kLeastShare) result.causes.push_back(cause);
    }
    std::ranges::stable_sort(result.causes, std::greater(), &SlowdownCause::share);
    return result;
  }

 private:
  static Key key_of(const TracedOp& op, TracedWorker w) {
    return {w.pipeline, w.rank, op.action.stage, op.action.instruction};
  }

  double replayed(const StepTimes& times) const {
    std::vector<double> all;
    for (const TracedStep& step : job_.steps) all.push_back(replay_step(job_, step, times));
    return mean(all);
  }

  void make_links_ideal(StepTimes& times) const {
    times.receive = [t = ideal_transfer_](const TracedOp& op, TracedWorker) { return op.receive_s > 0 ? t : 0; };
    times.send = [t = ideal_transfer_](const TracedOp& op, TracedWorker) { return op.send_s > 0 ? t : 0; };
  }
  void make_collectives_ideal(StepTimes& times) const {
    times.collective = [this](const TracedCollective& c, TracedWorker) { return ideal_collective_.at(c.kind); };
  }

  /// Computing time of a microbatch on a worker's stage, in the median of all steps.
  [[nodiscard]] double usual(int pipeline, int stage) const {
    double sum = 0;
    for (const auto& [key, time] : usual_) {
      if (key.pipeline == pipeline && key.stage == stage) sum += time;
    }
    return sum;
  }

  std::vector<SlowdownCause> candidates() const {
    std::vector<SlowdownCause> all;
    std::vector<double> fastest(job_.stages);  // of the workers of a stage
    std::vector<std::vector<double>> excess(job_.pipelines, std::vector<double>(job_.stages));  // logarithms
    for (int s = 0; s < job_.stages; ++s) {
      std::vector<double> times;
      for (int d = 0; d < job_.pipelines; ++d) times.push_back(std::max(usual(d, s), 1e-12));
      fastest[s] = *std::ranges::min_element(times);
      const double peers = lower_median(times);
      for (int d = 0; d < job_.pipelines; ++d) excess[d][s] = std::log(times[d] / peers);
    }
    for (int d = 0; d < job_.pipelines && job_.pipelines > 1; ++d) {
      const double of_pipeline = job_.stages > 1 ? lower_median(excess[d]) : 0;  // its sequences
      for (int s = 0; s < job_.stages; ++s) {
        const double factor = std::exp(excess[d][s] - of_pipeline);
        if (factor < 1 + kLeastExcess) continue;
        all.push_back({CauseKind::worker, {d, rank_of(s)}, s, factor});
      }
    }
    const double mean_stage = mean(fastest);
    for (int s = 0; s < job_.stages; ++s) {
      if (fastest[s] > (1 + kLeastExcess) * mean_stage)
        all.push_back({CauseKind::stage, {-1, -1}, s, fastest[s] / mean_stage});
    }
    if (!shared_.drift.empty()) all.push_back({CauseKind::drift, {-1, -1}, -1, shared_.drift.back()});
    if (!shared_.length.empty()) all.push_back({CauseKind::long_sequences, {-1, -1}, -1, shared_.longest});
    for (const CauseKind kind :
         {CauseKind::variation, CauseKind::links, CauseKind::collectives, CauseKind::pauses, CauseKind::gaps})
      all.push_back({kind});
    return all;
  }

  [[nodiscard]] int rank_of(int stage) const {
    const auto& ranks = job_.schedule().ranks;
    const auto holds = [&](const model::Action& a) { return a.stage == stage; };
    return static_cast<int>(std::ranges::find_if(ranks, [&](const auto& r) { return std::ranges::any_of(r, holds); }) -
                            ranks.begin());
  }

  /// Mean step time without a cause.
  [[nodiscard]] double replayed_without(const SlowdownCause& cause) const {
    std::vector<double> all;
    for (int s = 0; s < static_cast<int>(job_.steps.size()); ++s)
      all.push_back(replay_step(job_, job_.steps[s], without(cause, s)));
    return mean(all);
  }

  [[nodiscard]] StepTimes without(const SlowdownCause& cause, int step) const {
    StepTimes times = measured_;
    switch (cause.kind) {
      case CauseKind::worker:
      case CauseKind::stage:
        times.compute = [this, cause](const TracedOp& op, TracedWorker w) {
          const bool is_it = op.action.stage == cause.stage && (cause.kind == CauseKind::stage || w == cause.worker);
          return is_it ? ideal_compute_.at(op.action.instruction) : op.duration_s;
        };
        break;
      case CauseKind::drift:
        times.compute = [this, step](const TracedOp& op, TracedWorker) {
          return op.duration_s / shared_.drift_of(step);
        };
        break;
      case CauseKind::long_sequences:
        times.compute = [this, step](const TracedOp& op, TracedWorker w) {
          return op.duration_s / shared_.length_of(step, w.pipeline, op.action.microbatch);
        };
        break;
      case CauseKind::variation:
        times.compute = [this, step](const TracedOp& op, TracedWorker w) {
          return usual_.at(key_of(op, w)) * shared_factor(op, w, step);
        };
        break;
      case CauseKind::links:
        make_links_ideal(times);
        break;
      case CauseKind::collectives:
        make_collectives_ideal(times);
        break;
      case CauseKind::pauses:
        times.compute = [](const TracedOp& op, TracedWorker) { return op.duration_s - op.pause_s; };
        break;
      case CauseKind::gaps:
        break;
    }
    return times;
  }

  /// Of drift and sequences.
  [[nodiscard]] double shared_factor(const TracedOp& op, TracedWorker w, int step) const {
    return shared_.drift_of(step) * shared_.length_of(step, w.pipeline, op.action.microbatch);
  }

  const TracedJob& job_;
  StepTimes measured_;
  SharedFactors shared_;
  std::map<Key, std::vector<double>> times_;
  std::map<Key, double> usual_;
  std::map<Instruction, double> ideal_compute_;
  std::map<trace::SpanKind, double> ideal_collective_;
  double ideal_transfer_ = 0;
};

}  // namespace

std::string_view name_of(CauseKind kind) {
  switch (kind) {
    case CauseKind::worker:
      return "worker";
    case CauseKind::stage:
      return "stage";
    case CauseKind::drift:
      return "drift";
    case CauseKind::long_sequences:
      return "long_sequences";
    case CauseKind::variation:
      return "variation";
    case CauseKind::links:
      return "links";
    case CauseKind::collectives:
      return "collectives";
    case CauseKind::pauses:
      return "pauses";
    case CauseKind::gaps:
      return "gaps";
  }
  return "";
}

std::optional<double> time_until_next(const TracedJob& job, std::size_t step) {
  if (step + 1 >= job.steps.size() || job.steps[step + 1].number != job.steps[step].number + 1) return std::nullopt;
  return std::max(0.0, job.steps[step + 1].start_s - job.steps[step].end_s);
}

Slowdown explain(const TracedJob& job) { return Explaining(job).run(); }

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
