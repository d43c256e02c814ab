#include "server/profiling/slowdown_limit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planning/model/neighbors.h"

namespace perseus::profiling {
namespace {

// Standard deviations of the upper estimate above the mean.
constexpr double kUpperDeviations = 2;
// One pass raises all critical computations that lose at least this share of the worst one's loss.
constexpr double kRaisedShare = 0.5;

/// Longest paths through an iteration whose computations run at chosen clocks.
class Iteration {
 public:
  Iteration(const PlanningProblem& problem, const std::vector<std::vector<double>>& times)
      : dag_(problem.mean()),
        times_(times),
        before_(model::neighbors_before_s(dag_)),
        after_(model::neighbors_after_s(dag_)),
        duration_(dag_.computations.size()),
        slack_(duration_.size()) {
    const std::size_t n = dag_.computations.size();
    type_.resize(n);
    occurrence_.resize(n);
    std::vector<int> used(times.size());
    for (const std::vector<int>& order : dag_.rank_order) {
      for (const int c : order) {
        type_[c] = problem.profiled_type(dag_.computations[c].type);
        occurrence_[c] = used[type_[c]]++;
      }
    }
  }

  [[nodiscard]] int size() const { return static_cast<int>(type_.size()); }
  [[nodiscard]] int type(int c) const { return type_[c]; }
  /// Group of the computations that share a clock with this one.
  [[nodiscard]] int group(int c, SharedClock shared) const {
    return shared == SharedClock::computation ? c : shared == SharedClock::type ? type_[c] : dag_.computations[c].rank;
  }
  int& clock(ClockChoice& clocks, int c) const { return clocks[type_[c]][occurrence_[c]]; }
  [[nodiscard]] double loss(const ClockChoice& clocks, int c) const {
    const std::vector<double>& times = times_[type_[c]];
    return times[clocks[type_[c]][occurrence_[c]]] - times.front();
  }

  /// Returns the iteration's time; slack() is then that of these clocks.
  double run(const ClockChoice& clocks) {
    for (int c = 0; c < size(); ++c) duration_[c] = times_[type_[c]][clocks[type_[c]][occurrence_[c]]];
    const auto duration_of = [&](int c) { return duration_[c]; };
    makespan_ = model::longest_path(before_, duration_of, end_);
    model::latest_starts(after_, duration_of, 0.0, latest_start_);  // relative to the end of the iteration
    for (int c = 0; c < size(); ++c) {
      slack_[c] = makespan_ - model::earliest_start(before_, c, end_) + latest_start_[c];
    }
    return makespan_;
  }
  [[nodiscard]] double slack(int c) const { return slack_[c]; }
  [[nodiscard]] double makespan() const { return makespan_; }

 private:
  const model::ComputationDag& dag_;
  const std::vector<std::vector<double>>& times_;
  model::Neighbors<double> before_, after_;
  std::vector<double> duration_, end_, latest_start_, slack_;
  std::vector<int> type_, occurrence_;
  double makespan_ = 0;
};

/// Assigns the slowest clocks of each type to the computations with the most slack at the highest clock.
void place(Iteration& iteration, const std::vector<std::vector<double>>& times, ClockChoice& clocks) {
  std::vector<std::vector<int>> of_type(clocks.size());
  for (int c = 0; c < iteration.size(); ++c) of_type[iteration.type(c)].push_back(c);
  for (std::size_t t = 0; t < clocks.size(); ++t) {
    std::ranges::stable_sort(of_type[t], {}, [&](int c) { return iteration.slack(c); });
    std::vector<int> fastest_first = clocks[t];
    std::ranges::sort(fastest_first, {}, [&](int clock) { return times[t][clock]; });
    for (std::size_t k = 0; k < of_type[t].size(); ++k) iteration.clock(clocks, of_type[t][k]) = fastest_first[k];
  }
}

/// Halves the distance to the highest clock of the computations that delay the iteration most. False: there are none.
bool raise_worst(Iteration& iteration, ClockChoice& clocks, SharedClock shared) {
  const double tolerance = 1e-9 * iteration.makespan();
  double worst = 0;
  std::map<int, double> losses;  // by group
  for (int c = 0; c < iteration.size(); ++c) {
    const double loss = iteration.loss(clocks, c);
    if (iteration.slack(c) > tolerance || loss <= tolerance) continue;
    worst = std::max(worst, losses[iteration.group(c, shared)] += loss);
  }
  if (losses.empty()) return false;
  const double least = shared == SharedClock::computation ? kRaisedShare * worst : worst;
  for (int c = 0; c < iteration.size(); ++c) {
    const auto found = losses.find(iteration.group(c, shared));
    if (found != losses.end() && found->second >= least) iteration.clock(clocks, c) /= 2;
  }
  return true;
}

}  // namespace

std::vector<std::vector<double>> upper_times(const Layout& layout, const Samples& samples,
                                             const TimeEnergyModel& model) {
  const std::vector<ReplicaFactors> factors = replica_factors(layout, samples);
  std::vector<std::vector<double>> times;
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    const TimeEnergyModel::Curve& curve = model.log_time(t);
    std::vector<double>& own = times.emplace_back();
    double per_megahertz = INFINITY;  // time times clock, at the last measured clock
    for (std::size_t c = 0; c < type.clocks.size(); ++c) {
      const int k = static_cast<int>(c);
      const double mean = std::exp(curve.mean[c]) * factors[t].time;
      const double spread = kUpperDeviations * std::sqrt(std::max(0.0, curve.covariance(k, k)));
      // At the highest clock the mean, since the others are compared with it.
      const double believed = c == 0 ? mean : std::max(own.back(), mean * std::exp(spread));
      const double clock = std::max(1, type.clocks[c].value());
      if (samples.cells(t)[c].log_time.count > 0) {
        per_megahertz = mean * clock;
        own.push_back(believed);
      } else {
        own.push_back(std::min(believed, std::max(c == 0 ? 0 : own.back(), per_megahertz / clock)));
      }
    }
  }
  return times;
}

BoundedChoice bound_slowdown(const PlanningProblem& problem, const std::vector<std::vector<double>>& times,
                             ClockChoice clocks, double most_slowdown, SharedClock shared) {
  ClockChoice highest = clocks;
  for (std::vector<int>& own : highest) std::ranges::fill(own, 0);
  Iteration iteration(problem, times);
  const double fastest = iteration.run(highest);
  if (shared == SharedClock::computation) place(iteration, times, clocks);
  double now = iteration.run(clocks);
  while (now > (1 + most_slowdown) * fastest && raise_worst(iteration, clocks, shared)) { now = iteration.run(clocks); }
  return {std::move(clocks), std::max(0.0, now / fastest - 1)};
}

}  // namespace perseus::profiling
