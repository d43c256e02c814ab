#include "simulation/site_emulator/job_kind.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace perseus::site_emulator {

JobKind::JobKind(const model::ComputationDag& dag, Seconds full_speed)
    : dag_(dag), full_speed_(full_speed), waiting_(dag.total_blocking_power()), runner_(dag) {
  for (const model::ComputationType& type : dag.types) {
    for (const model::Measurement& option : type.options) highest_clock_ = std::max(highest_clock_, option.clock);
  }
}

int JobKind::way(const model::Plan& plan, Seconds pause) {
  const auto known = known_.try_emplace(plan).first;
  const auto [at, is_new] = known->second.try_emplace(pause.value(), static_cast<int>(ways_.size()));
  if (is_new) ways_.push_back({&known->first, pause.value()});
  return at->second;
}

int JobKind::paced_way(const model::Plan& plan, double rate) {
  if (rate <= 0) return way(plan, Seconds(std::numeric_limits<double>::infinity()));
  const double iteration_s = steady(way(plan))->length_s();
  return way(plan, Seconds(std::max(0.0, full_speed_.value() / rate - iteration_s)));
}

std::shared_ptr<const EnergyOverTime> JobKind::steady(int number) {
  Way& way = ways_[number];
  if (!way.steady) {
    const std::array plans{PlanFrom{way.plan, {}}};
    const SwitchedIteration run = runner_.run(plans);
    const Seconds pause(std::isinf(way.pause_s) ? 0 : way.pause_s);
    way.steady = std::make_shared<const EnergyOverTime>(run.power, waiting_, run.makespan + pause);
  }
  return way.steady;
}

Watts JobKind::mean(int way) { return std::isinf(pause_s(way)) ? waiting_ : steady(way)->mean(); }

double JobKind::rate(int way) { return std::isinf(pause_s(way)) ? 0 : full_speed_.value() / steady(way)->length_s(); }

const site::WindowSwing& JobKind::swing(int way, Seconds window) {
  const auto known = ways_[way].swings.find(window.value());
  if (known != ways_[way].swings.end()) return known->second;
  site::WindowSwing swing;
  if (!std::isinf(pause_s(way))) {
    const auto energy = steady(way);
    swing = site::window_swing(energy->steps(), Seconds(energy->length_s()), window);
  }
  return ways_[way].swings.emplace(window.value(), swing).first->second;
}

Seconds JobKind::longest_computation(int way) {
  Seconds longest;
  for (std::size_t i = 0; i < dag_.computations.size(); ++i) {
    longest = std::max(longest, dag_.type_of(static_cast<int>(i)).options[plan(way)[i]].time);
  }
  return longest;
}

}  // namespace perseus::site_emulator
