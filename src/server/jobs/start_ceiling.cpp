#include "server/jobs/start_ceiling.h"

#include <algorithm>

#include "planning/model/neighbors.h"
#include "server/jobs/at_clock.h"

namespace perseus::jobs {
namespace {

/// Rates that are equal differ in their last digits.
constexpr double kSameRate = 1 + 1e-9;

/// Everything at that clock.
Seconds iteration_time(const model::ComputationDag& dag, int clock_mhz) {
  std::vector<double> end_s;
  return Seconds(model::longest_path(
      model::neighbors_before_s(dag),
      [&](int i) { return at_or_below(dag.type_of(i).options, clock_mhz).time.value(); }, end_s));
}

bool keeps_rate(const PowerChoices& choices, int clock_mhz, double least_rate) {
  return std::ranges::all_of(choices.pipelines, [&](const PowerChoices::Pipelines& one) {
    return least_rate * iteration_time(one.pipeline->dag, clock_mhz) <= kSameRate * choices.full_speed;
  });
}

/// Of the slowest plan that keeps the rate; of the fastest if none does.
Watts least_plan(const PowerChoices& choices, double least_rate) {
  Watts least = choices.plans.front().power;
  for (const PowerAtTime& plan : choices.plans) {
    if (least_rate * plan.time <= kSameRate * choices.full_speed) least = std::min(least, plan.power);
  }
  return least;
}

}  // namespace

std::vector<StartCeiling> start_ceilings(const PowerChoices& choices, double least_rate) {
  std::vector<StartCeiling> ceilings;
  const Watts least = least_plan(choices, least_rate);
  for (const PowerChoices::AtClock& at : choices.at_clocks) {
    if (!keeps_rate(choices, at.clock_mhz, least_rate)) break;
    ceilings.push_back({at.clock_mhz, std::max(at.power, least)});
  }
  return ceilings;
}

std::optional<Watts> power_at_start(const PowerChoices& choices, int ceiling_mhz) {
  // A GPU has clocks between the measured ones: what the next higher one draws.
  std::optional<Watts> power;
  for (const PowerChoices::AtClock& at : choices.at_clocks) {
    if (!power || at.clock_mhz >= ceiling_mhz) power = at.power;
  }
  return power;
}

}  // namespace perseus::jobs
