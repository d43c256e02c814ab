#include "simulation/emulator/condition.h"

#include <algorithm>

namespace perseus::emulator {
namespace {

/// Energy of a computation that takes `time`, interpolated linearly between the measurements.
class TimeEnergyLine {
 public:
  TimeEnergyLine(std::vector<model::Measurement> measured, Watts waiting)
      : measured_(std::move(measured)), waiting_(waiting) {
    std::ranges::stable_sort(measured_, {}, [](const model::Measurement& m) { return std::pair(m.time, m.energy); });
  }
  [[nodiscard]] Seconds fastest() const { return measured_.front().time; }

  [[nodiscard]] Joules at(Seconds time) const {
    const auto right = std::ranges::lower_bound(measured_, time, {}, &model::Measurement::time);
    if (right == measured_.begin()) return right->energy;
    const model::Measurement& left = *(right - 1);
    if (right == measured_.end()) return left.energy + waiting_ * (time - left.time);
    const double part = (time - left.time) / (right->time - left.time);
    return left.energy + part * (right->energy - left.energy);
  }

 private:
  std::vector<model::Measurement> measured_;  // by ascending time
  Watts waiting_;
};

/// Blocking power of the rank that runs each type; 0 for types that no rank runs.
std::vector<Watts> waiting_power_of_types(const model::ComputationDag& dag) {
  std::vector<Watts> powers(dag.types.size());
  for (std::size_t i = 0; i < dag.computations.size(); ++i)
    powers[dag.computations[i].type] = dag.blocking_power_of(static_cast<int>(i));
  return powers;
}

}  // namespace

void Condition::add(const ThrottledStage& stage) {
  const auto at = std::ranges::lower_bound(throttled, stage.stage, {}, &ThrottledStage::stage);
  if (at == throttled.end() || at->stage != stage.stage) {
    throttled.insert(at, stage);
  } else {
    at->slowdown = std::max(at->slowdown, stage.slowdown);
    at->share = std::max(at->share, stage.share);
  }
}

model::ComputationDag throttled_dag(const model::ComputationDag& dag, const Condition& condition) {
  model::ComputationDag result = dag;
  const std::vector<Watts> waiting = waiting_power_of_types(dag);
  for (std::size_t k = 0; k < result.types.size(); ++k) {
    model::ComputationType& type = result.types[k];
    const auto throttled = std::ranges::find(condition.throttled, type.stage, &ThrottledStage::stage);
    if (throttled == condition.throttled.end()) continue;
    const TimeEnergyLine line(type.options, waiting[k]);
    const Seconds least = throttled->slowdown * line.fastest();
    for (model::Measurement& option : type.options) {
      if (option.clock == Megahertz(0) || option.time >= least) continue;
      const Joules of_others = option.energy + waiting[k] * (least - option.time);
      option.energy = throttled->share * line.at(least) + (1 - throttled->share) * of_others;
      option.time = least;
    }
  }
  return result;
}

}  // namespace perseus::emulator
