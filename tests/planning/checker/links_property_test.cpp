// A pipeline whose links differ: the DAG's longest path equals that of its schedule's recurrence.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "oracles/dice.h"
#include "planning/checker/plan_run.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/make_schedule.h"

namespace perseus::checker {
namespace {

using testing::ShrinkingDice;

constexpr Megahertz kClock{1000};

/// Iteration time by the recurrence of forwards and backwards, without a DAG. latency[from][to] in seconds.
double iteration_time(const model::Schedule& schedule, const std::map<std::pair<int, model::Instruction>, double>& time,
                      const std::vector<std::vector<double>>& latency, bool blocking) {
  const int ranks = schedule.num_ranks();
  std::map<int, int> rank_of;
  for (int r = 0; r < ranks; ++r) {
    for (const model::Action& action : schedule.ranks[r]) rank_of[action.stage] = r;
  }
  std::map<std::tuple<model::Instruction, int, int>, double> end;
  std::vector<std::size_t> next(ranks);
  std::vector<double> free_at(ranks);
  double last = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < ranks; ++r) {
      while (next[r] < schedule.ranks[r].size()) {
        const auto [instruction, stage, microbatch] = schedule.ranks[r][next[r]];
        const bool forward = instruction == model::Instruction::forward;
        const int from = stage + (forward ? -1 : 1);
        double start = free_at[r];
        if (from >= 0 && from < schedule.num_stages) {
          const auto sent = end.find({instruction, from, microbatch});
          if (sent == end.end()) break;
          const int sender = rank_of[from];
          start = std::max(start, sent->second + (sender == r ? 0 : latency[sender][r]));
        }
        const double done = start + time.at({stage, instruction});
        end[{instruction, stage, microbatch}] = done;
        last = std::max(last, done);
        const int to = stage + (forward ? 1 : -1);
        const bool sends = to >= 0 && to < schedule.num_stages && rank_of[to] != r;
        free_at[r] = done + (blocking && sends ? latency[r][rank_of[to]] : 0);
        ++next[r];
        moved = true;
      }
    }
  }
  return last;
}

RC_GTEST_PROP(Links, DagHasTheLongestPathOfTheRecurrence, ()) {
  ShrinkingDice dice;
  const bool interleaved = dice.one_in(3);
  const int ranks = dice.roll(2, 5);
  const int microbatches = interleaved ? ranks * dice.roll(1, 3) : dice.roll(1, 8);
  const auto schedule = model::make_schedule(interleaved      ? "interleaved-1f1b"
                                             : dice.one_in(2) ? "gpipe"
                                                              : "1f1b",
                                             {ranks, microbatches, interleaved ? 2 : 1});
  RC_ASSERT(schedule.ok());
  model::Profile profile;
  std::map<std::pair<int, model::Instruction>, double> time;
  profile.accelerators.assign(schedule->num_stages, 1);
  for (int stage = 0; stage < schedule->num_stages; ++stage) {
    for (const model::Instruction instruction : {model::Instruction::forward, model::Instruction::backward}) {
      const double s = dice.real(0.5, 2);
      time[{stage, instruction}] = s;
      profile.entries.push_back(
          {stage, std::string(model::name_of(instruction)), {{kClock, Seconds(s), Joules(1), {}, {}}}});
    }
  }
  std::vector<std::vector<double>> latency(ranks, std::vector<double>(ranks));
  model::TransferLatency links;
  for (int b = 0; b < (ranks > 2 ? ranks : 1); ++b) {
    const int low = b, high = (b + 1) % ranks;
    latency[low][high] = dice.real(0, 1);
    latency[high][low] = dice.real(0, 1);
    links.boundaries.push_back({Seconds(latency[low][high]), Seconds(latency[high][low])});
  }
  const bool blocking = dice.one_in(2);
  const auto dag = model::build_dag(profile, *schedule, {Watts(0), links, blocking});
  RC_ASSERT(dag.ok());
  const PlanRun run = run_plan(*dag, model::Plan(dag->computations.size()));
  const double expected = iteration_time(*schedule, time, latency, blocking);
  RC_ASSERT(std::abs(run.makespan.value() - expected) <= 1e-9 * expected);
}

}  // namespace
}  // namespace perseus::checker
