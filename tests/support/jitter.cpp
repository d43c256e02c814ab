#include "tests/support/jitter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "planning/model/neighbors.h"

namespace perseus::calibration {
namespace {

using Runs = std::vector<const model::TracedPlan*>;

/// The runs of each plan, by the clocks of its computations.
std::vector<Runs> repeated(const model::RunTrace& trace) {
  std::map<std::vector<int>, Runs> by_clocks;
  for (const model::TracedPlan& plan : trace.plans) {
    std::vector<int> clocks;
    for (const auto& stage : plan.stages) {
      for (const model::TracedComputation& c : stage) clocks.push_back(c.clock.value());
    }
    by_clocks[clocks].push_back(&plan);
  }
  std::vector<Runs> found;
  for (auto& [clocks, runs] : by_clocks) {
    if (runs.size() > 1) found.push_back(std::move(runs));
  }
  return found;
}

/// Sum of squares, and how many independent terms it has.
struct Squares {
  double sum = 0, freedom = 0;
  [[nodiscard]] double variance() const { return freedom > 0 ? sum / freedom : 0; }
};

/// Variances of the means of the runs.
struct Variances {
  Squares independent, stages, runs;
  double per_stage = 0;  ///< computations of a stage

  void add(const Runs& repeats) {
    const auto count = static_cast<double>(repeats.size());
    const std::size_t stages_here = repeats[0]->stages.size();
    std::vector<std::vector<double>> effect(repeats.size());  // [run][stage]
    for (std::size_t s = 0; s < stages_here; ++s) {
      const std::size_t computations = repeats[0]->stages[s].size();
      per_stage = static_cast<double>(computations);
      std::vector<std::vector<double>> off(repeats.size());  // [run][computation]
      for (std::size_t c = 0; c < computations; ++c) {
        double mean = 0;
        for (const auto* run : repeats) mean += std::log(run->stages[s][c].time.value()) / count;
        for (std::size_t r = 0; r < repeats.size(); ++r)
          off[r].push_back(std::log(repeats[r]->stages[s][c].time.value()) - mean);
      }
      for (std::size_t r = 0; r < repeats.size(); ++r) effect[r].push_back(take_mean(off[r], independent));
      independent.freedom += (count - 1) * (per_stage - 1);
    }
    for (auto& of_run : effect) runs.sum += std::pow(take_mean(of_run, stages), 2);
    stages.freedom += (count - 1) * static_cast<double>(stages_here - 1);
    runs.freedom += count - 1;
  }

 private:
  /// The mean; adds the squares of what remains without it.
  static double take_mean(const std::vector<double>& values, Squares& rest) {
    double mean = 0;
    for (const double v : values) mean += v / static_cast<double>(values.size());
    for (const double v : values) rest.sum += (v - mean) * (v - mean);
    return mean;
  }
};

}  // namespace

std::optional<Jitter> measured_jitter(const model::RunTrace& trace) {
  const std::vector<Runs> plans = repeated(trace);
  if (plans.empty()) return std::nullopt;
  Variances found;
  for (const Runs& runs : plans) found.add(runs);
  const double iterations = plans.front().front()->iterations, independent = found.independent.variance();
  const auto stages = static_cast<double>(trace.num_stages());
  const double of_stage = std::max(0.0, found.stages.variance() - independent / found.per_stage);
  const double of_run = std::max(0.0, found.runs.variance() - (of_stage + independent / found.per_stage) / stages);
  return Jitter{std::sqrt(iterations * independent), std::sqrt(iterations * of_stage), std::sqrt(iterations * of_run)};
}

double lateness(const model::ComputationDag& dag, const model::Plan& plan, const Jitter& jitter, int pairs) {
  const std::size_t n = dag.computations.size();
  const model::Neighbors<double> before = model::neighbors_before_s(dag);
  std::vector<double> end, moved(n), of_rank(dag.rank_order.size());
  const auto makespan_s = [&](double sign) {
    return model::longest_path(
        before,
        [&](int c) { return dag.type_of(c).options[plan[c]].time.value() * std::max(0.0, 1 + sign * moved[c]); }, end);
  };
  std::mt19937_64 engine(1);
  // Twelve uniform numbers: the same draws with every standard library.
  const auto normal = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += std::ldexp(static_cast<double>(engine() >> 11U), -53);
    return sum;
  };
  const double mean_s = makespan_s(0);
  double later_s = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    for (double& rank : of_rank) rank = jitter.of_stage * normal();
    for (std::size_t c = 0; c < n; ++c) {
      const bool has_clock = dag.type_of(static_cast<int>(c)).options[plan[c]].clock != Megahertz(0);
      moved[c] = has_clock ? of_rank[dag.computations[c].rank] + jitter.independent * normal() : 0;
    }
    later_s += (makespan_s(1) + makespan_s(-1)) / 2 - mean_s;
  }
  return std::max(0.0, later_s / pairs / mean_s);
}

}  // namespace perseus::calibration
