// The rule that selects the default plan, on random frontiers: no allowed choice needs less energy, and a larger
// tolerance never needs more.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "oracles/dice.h"
#include "planning/model/default_plan.h"

namespace perseus::model {
namespace {

struct WaitingPipelines {
  std::vector<Frontier> frontiers;
  std::vector<Followers> followers;
  std::vector<Watts> waiting;  ///< of one copy
  Watts others;
};

WaitingPipelines random_pipelines() {
  testing::ShrinkingDice dice;
  WaitingPipelines job;
  const int kinds = dice.roll(1, 3);
  for (int kind = 0; kind < kinds; ++kind) {
    const Watts waiting(dice.roll(0, 40));
    Frontier frontier;
    double time_s = 0.1 * dice.roll(5, 20), effective_j = dice.roll(50, 100);
    for (int points = dice.roll(1, 12); points > 0; --points) {
      frontier.points.push_back(
          {Seconds(time_s), Joules(effective_j) + waiting * Seconds(time_s), Joules(effective_j), {}, {}});
      time_s += 0.01 * dice.roll(1, 40), effective_j -= 0.1 * dice.roll(1, 60);
    }
    std::ranges::reverse(frontier.points);
    job.frontiers.push_back(std::move(frontier));
    job.waiting.push_back(waiting);
  }
  for (const Frontier& frontier : job.frontiers) job.followers.push_back({&frontier, double(dice.roll(1, 4))});
  job.others = Watts(dice.roll(0, 3) == 0 ? dice.roll(0, 100) : 0);
  return job;
}

/// Energy of all pipelines in an iteration of that time, each at its slowest plan within it.
Joules waited_energy(const WaitingPipelines& job, Seconds time) {
  Joules energy = job.others * time;
  for (std::size_t kind = 0; kind < job.frontiers.size(); ++kind) {
    const FrontierPoint* runs = &job.frontiers[kind].points.back();
    for (const FrontierPoint& point : job.frontiers[kind].points) {
      if (point.time <= kSameTime * time && point.time > runs->time) runs = &point;
    }
    energy += job.followers[kind].copies * (runs->effective_energy + job.waiting[kind] * time);
  }
  return energy;
}

constexpr double energy_rounding = 1e-8;

RC_GTEST_PROP(DefaultPlanProperty, NoAllowedTimeNeedsLessAndMoreToleranceNeverCosts, ()) {
  const WaitingPipelines job = random_pipelines();
  const Seconds straggler(*rc::gen::inRange(0, 400) * 0.01);
  std::vector<Seconds> limits;
  for (int i = 0; i < 4; ++i) limits.emplace_back(*rc::gen::inRange(0, 600) * 0.01);
  std::ranges::sort(limits);
  Seconds floor = straggler;
  for (const Frontier& frontier : job.frontiers) floor = std::max(floor, frontier.points.back().time);
  Joules before(INFINITY);
  for (const Seconds limit : limits) {
    const Seconds chosen = least_energy_time(job.followers, job.others, straggler, limit);
    RC_ASSERT(chosen >= floor);
    RC_ASSERT(chosen <= std::max(floor, limit));
    // The iteration ends with the slowest plan that runs, or with the straggler that the others wait for.
    Seconds ends = floor;
    for (const Frontier& frontier : job.frontiers) {
      ends = std::max(ends, frontier.points[slowest_within(frontier, chosen)].time);
    }
    const Joules energy = waited_energy(job, ends);
    for (const Frontier& frontier : job.frontiers) {
      for (const FrontierPoint& point : frontier.points) {
        if (point.time > floor && point.time <= std::max(floor, limit)) {
          RC_ASSERT(energy <= (1 + energy_rounding) * waited_energy(job, point.time));
        }
      }
    }
    RC_ASSERT(energy <= (1 + energy_rounding) * waited_energy(job, floor));
    RC_ASSERT(energy <= (1 + energy_rounding) * before);
    before = energy;
  }
}

}  // namespace
}  // namespace perseus::model
