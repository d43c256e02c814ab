#include "planning/planner/run_annealing.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace perseus::planner {
namespace {

constexpr double kSameDeadline = 1e-12;
constexpr long kOperationsOfAMove = 40;  // per computation: two realizations
// Of a computation's mean energy.
constexpr double kHottest = 0.13, kColdest = 4e-4;
// Of a second that a plan is late: times the mean power of all ranks.
constexpr double kPriceOfLateness = 4;

struct Stretch {
  int rank;
  std::size_t from, to;
  Megahertz clock;
};

class Moves {
 public:
  Moves(const model::ComputationDag& dag, const ClockRuns& runs) : runs_(runs) {
    for (int rank = 0; rank < dag.num_ranks(); ++rank) {
      if (runs.clocks(rank).size() > 1) ranks_.push_back(rank);
    }
  }
  [[nodiscard]] bool any() const { return !ranks_.empty(); }

  Stretch draw(const model::Plan& plan) {
    const int rank = ranks_[below(ranks_.size())];
    const std::size_t length = runs_.length(rank), from = below(length);
    std::size_t to = from + 1;
    while (to < from + length && below(4) > 0) ++to;
    return {rank, from, to, clock_for(rank, from, to, plan)};
  }
  /// Uniform in (0, 1].
  double share() { return (static_cast<double>(random_()) + 1) / (static_cast<double>(std::mt19937::max()) + 1); }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  Megahertz clock_for(int rank, std::size_t from, std::size_t to, const model::Plan& plan) {
    const std::vector<Megahertz>& clocks = runs_.clocks(rank);
    // Candidates from outside may have clocks that the rank's types do not share: then the lowest shared one.
    const auto index_of = [&](Megahertz clock) { return std::ranges::find(clocks, clock) - clocks.begin(); };
    const auto shared = [&](std::ptrdiff_t index) {
      return clocks[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(index, 0, std::ssize(clocks) - 1))];
    };
    switch (below(4)) {
      case 0:
        return shared(index_of(runs_.clock_at(rank, from + runs_.length(rank) - 1, plan)));
      case 1:
        return shared(index_of(runs_.clock_at(rank, to, plan)));
      case 2:
        return clocks[below(clocks.size())];
      default:
        return shared(index_of(runs_.clock_at(rank, from, plan)) + static_cast<std::ptrdiff_t>(below(5)) - 2);
    }
  }

  const ClockRuns& runs_;
  std::vector<int> ranks_;  // with a choice of clocks
  std::mt19937 random_;
};

}  // namespace

Realizer::Outcome anneal_runs(const model::ComputationDag& dag, const ClockRuns& runs, LateClocks& late,
                              Seconds deadline, Seconds min_dwell, model::Plan& plan, long moves, StopCheck& check) {
  const auto computations = static_cast<double>(plan.size());
  const long operations = kOperationsOfAMove * static_cast<long>(plan.size());
  const Seconds latest = deadline * (1 + kSameDeadline);
  Realizer::Outcome now = late.realize(plan), best = now;
  Moves random(dag, runs);
  if (!random.any()) return best;
  const Joules energy = now.effective_energy + dag.total_blocking_power() * now.time;
  const double late_w = kPriceOfLateness * (energy / deadline).value();
  const auto cost_j = [&](const Realizer::Outcome& outcome) {
    return outcome.effective_energy.value() + late_w * std::max(0.0, (outcome.time - latest).value());
  };
  model::Plan current = plan;
  for (long i = 0; i < moves && !check.stop(operations); ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(moves);
    const double temperature_j = energy.value() / computations * kHottest * std::pow(kColdest / kHottest, done);
    const Stretch move = random.draw(current);
    model::Plan tried = current;
    runs.set(tried, move.rank, move.from, move.to, move.clock);
    if (tried == current) continue;
    const Realizer::Outcome outcome = late.realize(tried);
    if (cost_j(outcome) - cost_j(now) > -temperature_j * std::log(random.share())) continue;
    if (!runs.dwells(tried, late.end_s(), outcome.time, min_dwell)) continue;
    current = std::move(tried);
    now = outcome;
    if (now.time > latest || now.effective_energy >= best.effective_energy) continue;
    best = now;
    plan = current;
  }
  return best;
}

}  // namespace perseus::planner
