#include "evaluation/what_if/slowdown_causes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/median.h"
#include "evaluation/what_if/replay_step.h"
#include "evaluation/what_if/shared_factors.h"

namespace perseus::what_if {
namespace {

using model::Instruction;

constexpr double kLeastLost = 0.005;  ///< of a step: below, nobody is named
constexpr std::size_t kFewSteps = 4;  ///< one of so many

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// A computation of one worker: stages of one rank count by themselves.
struct Key {
  int pipeline, rank, stage;
  Instruction instruction;
  auto operator<=>(const Key&) const = default;
};

/// Sums of what places cost. The largest counts if it holds clearly more than its part.
template <class Place>
class Costs {
 public:
  void add(const Place& place, double cost) {
    sums_[place] += std::max(0.0, cost);
    all_ += std::max(0.0, cost);
  }
  [[nodiscard]] std::optional<Place> most() const {
    if (sums_.empty()) return std::nullopt;
    const auto largest = std::ranges::max_element(sums_, {}, [](const auto& sum) { return sum.second; });
    const bool holds_most = largest->second > (1 + 1 / static_cast<double>(sums_.size())) / 2 * all_;
    return holds_most || sums_.size() == 1 ? std::optional(largest->first) : std::nullopt;
  }

 private:
  std::map<Place, double> sums_;
  double all_ = 0;
};

class Explaining {
 public:
  explicit Explaining(const TracedJob& job) : job_(job), measured_(measured_times()) {
    for (const TracedStep& step : job.steps) step_s_.push_back(replay_step(job, step, measured_));
    usual_step_s_ = lower_median(step_s_);
    for (const double seconds : step_s_) is_long_.push_back(seconds > kLong * usual_step_s_);
    shared_ = shared_factors(job, is_long_);
    std::map<trace::SpanKind, std::vector<double>> collectives;
    std::map<Instruction, std::vector<double>> computations;
    std::map<Key, std::vector<double>> times;
    std::vector<double> transfers;
    for_each_rank(job, [&](const RankStep& rank, TracedWorker worker, int s) {
      for (const TracedOp& op : rank.ops) {
        if (op.receive_s > 0) transfers.push_back(op.receive_s);
        if (op.send_s > 0) transfers.push_back(op.send_s);
        if (is_long_[s]) continue;
        times[key_of(op, worker)].push_back(op.duration_s / shared_.of(s, worker.pipeline, op.action.microbatch));
        computations[op.action.instruction].push_back(op.duration_s / shared_.drift_of(s));
      }
      for (const auto* list : {&rank.before, &rank.after}) {
        for (const TracedCollective& c : *list) collectives[c.kind].push_back(c.duration_s);
      }
    });
    for (const auto& [kind, all] : collectives) ideal_collective_[kind] = median(all);
    if (!transfers.empty()) ideal_transfer_ = median(transfers);
    for (const auto& [instruction, all] : computations) ideal_compute_[instruction] = mean(all);
    for (const auto& [key, all] : times) usual_[key] = median(all);
    slow_.assign(job.pipelines, std::vector<bool>(job.stages));
  }

  Slowdown run() {
    Slowdown result;
    result.types = type_times(job_);
    result.links = link_times(job_);
    std::vector<double> measured, between;
    for (const TracedStep& step : job_.steps) measured.push_back(step.time_s());
    for (const auto& gap : times_until_next(job_)) {
      if (gap) between.push_back(*gap);
    }
    result.measured_s = mean(measured);
    result.step_s = step_s_;
    result.as_run_s = mean(step_s_);
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
    std::vector<double> ideals;
    for (std::size_t s = 0; s < job_.steps.size(); ++s) {
      if (!is_long_[s]) ideals.push_back(replay_step(job_, job_.steps[s], ideal));
    }
    result.ideal_s = mean(ideals);
    const double lost = result.as_run_s - result.ideal_s, all_lost = result.measured_s - result.ideal_s;
    if (std::max(lost, all_lost) < kLeastLost * result.as_run_s) return result;
    std::vector<SlowdownCause> all = candidates();
    const auto slow_ones = std::ranges::count_if(all, is_slow_one);
    const std::vector<double> none_slow = slow_ones > 1 ? replayed([&](int) { return mended(nullptr); }) : step_s_;
    for (SlowdownCause& cause : all) {
      std::vector<double> without = replayed_without(cause), with = step_s_;
      cause.without_s = mean(without);
      if (cause.kind == CauseKind::gaps) with = measured;
      if (slow_ones > 1 && is_slow_one(cause)) {  // as if it were the only one
        with = replayed([&](int) { return mended(&cause); });
        without = none_slow;
      }
      const double of = cause.kind == CauseKind::gaps ? all_lost : lost;
      cause.share = of > 0 ? (mean(with) - mean(without)) / of : 0;
      if (cause.share < kLeastShare) continue;
      find_steps(with, without, cause);
      find_place(cause);
      result.causes.push_back(std::move(cause));
    }
    std::ranges::stable_sort(result.causes, std::greater(), &SlowdownCause::share);
    return result;
  }

 private:
  static Key key_of(const TracedOp& op, TracedWorker w) {
    return {w.pipeline, w.rank, op.action.stage, op.action.instruction};
  }
  static bool is_slow_one(const SlowdownCause& cause) {
    return cause.kind == CauseKind::worker || cause.kind == CauseKind::pipeline;
  }

  /// Per step; long ones as they ran. `times(step)`.
  template <class Times>
  [[nodiscard]] std::vector<double> replayed(Times times) const {
    std::vector<double> all = step_s_;
    for (int s = 0; s < static_cast<int>(all.size()); ++s) {
      if (!is_long_[s]) all[s] = replay_step(job_, job_.steps[s], times(s));
    }
    return all;
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

  std::vector<SlowdownCause> candidates() {
    std::vector<SlowdownCause> all;
    std::vector<double> peers;  // the usual worker of each stage
    std::vector<std::vector<double>> excess(job_.pipelines, std::vector<double>(job_.stages));  // logarithms
    for (int s = 0; s < job_.stages; ++s) {
      std::vector<double> times;
      for (int d = 0; d < job_.pipelines; ++d) times.push_back(std::max(usual(d, s), 1e-12));
      peers.push_back(lower_median(times));
      for (int d = 0; d < job_.pipelines; ++d) excess[d][s] = std::log(times[d] / peers[s]);
    }
    for (int d = 0; d < job_.pipelines; ++d) {
      if (shared_.pipeline_of(d) > 1) all.push_back({CauseKind::pipeline, {d, -1}, -1, shared_.pipeline_of(d)});
      // A fast worker makes none of the others slow.
      const double of_pipeline = job_.stages > 1 ? std::max(0.0, lower_median(excess[d])) : 0;
      for (int s = 0; s < job_.stages; ++s) {
        const double factor = std::exp(excess[d][s] - of_pipeline);
        if (factor < 1 + kLeastExcess) continue;
        slow_[d][s] = true;
        all.push_back({CauseKind::worker, {d, rank_of(s)}, s, factor});
      }
    }
    const double usual_stage = lower_median(peers);
    for (int s = 0; s < job_.stages; ++s) {
      if (peers[s] > (1 + kLeastExcess) * usual_stage)
        all.push_back({CauseKind::stage, {-1, -1}, s, peers[s] / usual_stage});
    }
    if (std::ranges::count(is_long_, true) > 0)
      all.push_back({CauseKind::steps, {-1, -1}, -1, *std::ranges::max_element(step_s_) / usual_step_s_});
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

  /// Step times without a cause.
  [[nodiscard]] std::vector<double> replayed_without(const SlowdownCause& cause) const {
    if (cause.kind == CauseKind::gaps) return step_s_;
    if (cause.kind != CauseKind::steps) return replayed([&](int s) { return without(cause, s); });
    std::vector<double> all = step_s_;
    for (std::size_t s = 0; s < all.size(); ++s) {
      if (is_long_[s]) all[s] = usual_step_s_;
    }
    return all;
  }

  /// As measured, but no worker and no pipeline is slow, except one.
  [[nodiscard]] StepTimes mended(const SlowdownCause* except) const {
    StepTimes times = measured_;
    times.compute = [this, except](const TracedOp& op, TracedWorker w) {
      const int stage = op.action.stage;
      const bool its_pipeline = except != nullptr && w.pipeline == except->worker.pipeline;
      if (slow_[w.pipeline][stage] && !(its_pipeline && stage == except->stage))
        return ideal_compute_.at(op.action.instruction);
      return op.duration_s / (its_pipeline && except->stage < 0 ? 1 : shared_.pipeline_of(w.pipeline));
    };
    return times;
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
      case CauseKind::pipeline:
        times.compute = [cause](const TracedOp& op, TracedWorker w) {
          return op.duration_s / (w.pipeline == cause.worker.pipeline ? cause.factor : 1);
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
          return usual_.at(key_of(op, w)) * shared_.of(step, w.pipeline, op.action.microbatch);
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
      case CauseKind::steps:
      case CauseKind::gaps:
        break;
    }
    return times;
  }

  /// The fewest steps that hold half of what the cause costs, if they are few.
  void find_steps(const std::vector<double>& with, const std::vector<double>& without, SlowdownCause& cause) const {
    std::vector<std::pair<double, int>> costs;
    double all = 0, held = 0;
    for (std::size_t s = 0; s < with.size(); ++s) {
      costs.emplace_back(std::max(0.0, with[s] - without[s]), job_.steps[s].number);
      all += costs.back().first;
    }
    std::ranges::sort(costs, std::greater());
    const std::size_t few = cause.kind == CauseKind::steps ? costs.size() : costs.size() / kFewSteps;
    const double part = cause.kind == CauseKind::steps ? 1 - 1e-9 : 0.5;
    for (std::size_t s = 0; s < costs.size() && held < part * all; ++s) {
      held += costs[s].first;
      cause.steps.push_back(costs[s].second);
    }
    if (cause.steps.size() > few) cause.steps.clear();
    std::ranges::sort(cause.steps);
  }

  /// The worker, link or kind of collective that most of the cause is in.
  void find_place(SlowdownCause& cause) const {
    const bool computes = cause.kind == CauseKind::variation || cause.kind == CauseKind::pauses;
    if (!computes && cause.kind != CauseKind::links && cause.kind != CauseKind::collectives) return;
    Costs<std::tuple<int, int, int>> workers;  // pipeline, rank, stage
    Costs<TracedLink> links, boundaries;
    Costs<trace::SpanKind> collectives;
    for_each_rank(job_, [&](const RankStep& rank, TracedWorker worker, int s) {
      if (is_long_[s]) return;
      const StepTimes times = without(cause, s);
      for (const TracedOp& op : rank.ops) {
        const int stage = op.action.stage;
        const bool forward = op.action.instruction == Instruction::forward;
        if (computes) workers.add({worker.pipeline, worker.rank, stage}, op.duration_s - times.compute(op, worker));
        for (const auto& [seconds, ideal, boundary] :
             {std::tuple(op.receive_s, times.receive(op, worker), forward ? stage - 1 : stage),
              std::tuple(op.send_s, times.send(op, worker), forward ? stage : stage - 1)}) {
          if (seconds <= 0) continue;
          links.add({boundary, forward, worker.pipeline}, seconds - ideal);
          boundaries.add({boundary, forward, -1}, seconds - ideal);
        }
      }
      for (const auto* list : {&rank.before, &rank.after}) {
        for (const TracedCollective& c : *list) collectives.add(c.kind, c.duration_s - times.collective(c, worker));
      }
    });
    if (cause.kind == CauseKind::links) {
      cause.link = links.most();
      if (!cause.link) cause.link = boundaries.most();
    } else if (cause.kind == CauseKind::collectives) {
      cause.collective = collectives.most();
    } else if (const auto most = workers.most()) {
      const auto [pipeline, rank, stage] = *most;
      cause.worker = {pipeline, rank}, cause.stage = stage;
    }
  }

  const TracedJob& job_;
  StepTimes measured_;
  std::vector<double> step_s_;  ///< replayed
  double usual_step_s_ = 0;
  std::vector<bool> is_long_;  ///< per step: left out of all causes but one
  SharedFactors shared_;
  std::map<Key, double> usual_;
  std::map<Instruction, double> ideal_compute_;
  std::map<trace::SpanKind, double> ideal_collective_;
  double ideal_transfer_ = 0;
  std::vector<std::vector<bool>> slow_;  ///< by pipeline and stage: the workers among the candidates
};

}  // namespace

std::string_view name_of(CauseKind kind) {
  constexpr std::array<std::string_view, 11> names{"worker",      "pipeline",       "stage",     "steps",
                                                   "drift",       "long_sequences", "variation", "links",
                                                   "collectives", "pauses",         "gaps"};
  static_assert(names.size() == static_cast<std::size_t>(CauseKind::gaps) + 1);
  return names[static_cast<std::size_t>(kind)];
}

Slowdown explain(const TracedJob& job) { return Explaining(job).run(); }

}  // namespace perseus::what_if
