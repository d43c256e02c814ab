#include "planning/planner/run_descent.h"

#include <algorithm>

namespace perseus::planner {
namespace {

constexpr double kDescentDigits = 1e-12;
constexpr long kOperationsPerComputation = 40;  // to realize a plan twice

// A section of a rank, and its clock after the move.
struct Move {
  std::size_t from, to;
  Megahertz clock;
};

// Moves of the run [from, to) of a rank that give computations a lower clock, the largest ones first.
std::vector<Move> moves_of(const ClockRuns& runs, int rank, const model::Plan& plan, std::size_t from, std::size_t to,
                           bool has_neighbors) {
  std::vector<Move> moves;
  const std::vector<Megahertz>& clocks = runs.clocks(rank);
  const Megahertz now = runs.clock_at(rank, from, plan);
  const std::size_t length = runs.length(rank), middle = from + (to - from) / 2;
  const auto at = static_cast<std::size_t>(std::ranges::find(clocks, now) - clocks.begin());
  if (at == clocks.size()) return moves;
  for (const std::size_t lower : {std::size_t{8}, std::size_t{3}, std::size_t{1}}) {
    if (at + lower < clocks.size()) moves.push_back({from, to, clocks[at + lower]});
  }
  if (has_neighbors) {
    // A candidate from outside may run a neighbor at a clock that is not common to the rank's types.
    const auto lower_and_common = [&](Megahertz clock) {
      return clock < now && std::ranges::find(clocks, clock) != clocks.end();
    };
    const Megahertz before = runs.clock_at(rank, from + length - 1, plan), after = runs.clock_at(rank, to, plan);
    for (std::size_t part = to - from; part > 0; part /= 2) {
      if (lower_and_common(before)) moves.push_back({from, from + part, before});
      if (lower_and_common(after)) moves.push_back({to - part, to, after});
    }
  }
  for (const std::size_t lower : {std::size_t{8}, std::size_t{2}}) {
    if (at + lower >= clocks.size() || middle == from) continue;
    moves.push_back({from, middle, clocks[at + lower]});
    moves.push_back({middle, to, clocks[at + lower]});
  }
  return moves;
}

}  // namespace

Realizer::Outcome slow_down_runs(const model::ComputationDag& dag, const ClockRuns& runs, LateClocks& late,
                                 Seconds deadline, Seconds min_dwell, model::Plan& plan, long& budget,
                                 StopCheck& check) {
  const long cost_of_move = kOperationsPerComputation * static_cast<long>(dag.computations.size());
  Realizer::Outcome best = late.realize(plan);
  std::vector<double> end_s = late.end_s();
  // Returns whether the move improves the plan; if it does, the plan keeps the move.
  const auto take = [&](int rank, const Move& move) {
    --budget;
    model::Plan tried = plan;
    runs.set(tried, rank, move.from, move.to, move.clock);
    const Realizer::Outcome outcome = late.realize(tried);
    if (outcome.time > deadline * (1 + kDescentDigits) || outcome.effective_energy >= best.effective_energy)
      return false;
    if (!runs.dwells(tried, late.end_s(), outcome.time, min_dwell)) return false;
    best = outcome;
    end_s = late.end_s();
    plan = std::move(tried);
    return true;
  };
  bool improved = true;
  while (improved && budget > 0 && !check.stopped()) {
    improved = false;
    for (int rank = 0; rank < dag.num_ranks(); ++rank) {
      if (runs.clocks(rank).empty()) continue;
      std::vector<ClockRuns::Run> of_rank = runs.runs(rank, plan, end_s, best.time);
      const bool changes = !of_rank.empty();
      if (!changes) of_rank.push_back({0, runs.length(rank), 0});
      for (const ClockRuns::Run& run : of_rank) {
        bool moved = false;
        for (const Move& move : moves_of(runs, rank, plan, run.from, run.to, changes)) {
          if (budget <= 0 || check.stop(cost_of_move)) return best;
          moved = take(rank, move);
          if (moved) break;
        }
        if (!moved) continue;
        improved = true;
        break;  // the rank's runs have changed; the next sweep returns to it
      }
    }
  }
  return best;
}

}  // namespace perseus::planner
