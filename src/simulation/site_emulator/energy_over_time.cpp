#include "simulation/site_emulator/energy_over_time.h"

#include <algorithm>

namespace perseus::site_emulator {

EnergyOverTime::EnergyOverTime(const std::vector<emulator::PowerChange>& above_waiting, Watts waiting, Seconds length)
    : time_s_{0}, power_w_{waiting.value()}, energy_j_{0}, length_s_(length.value()) {
  for (const emulator::PowerChange& change : above_waiting) {
    if (change.time_s > time_s_.back()) {
      energy_j_.push_back(energy_j_.back() + power_w_.back() * (change.time_s - time_s_.back()));
      time_s_.push_back(change.time_s);
      power_w_.push_back(power_w_.back());
    }
    power_w_.back() += change.by_w;
  }
  whole_j_ = at_s(length_s_);
}

double EnergyOverTime::at_s(double time_s) const {
  const auto after = std::upper_bound(time_s_.begin() + 1, time_s_.end(), time_s);
  const auto k = static_cast<std::size_t>(after - time_s_.begin()) - 1;
  return energy_j_[k] + power_w_[k] * (time_s - time_s_[k]);
}

std::vector<site::PowerStep> EnergyOverTime::steps() const {
  std::vector<site::PowerStep> steps;
  for (std::size_t k = 0; k < time_s_.size() && time_s_[k] < length_s_; ++k) {
    steps.push_back({Seconds(time_s_[k]), Watts(power_w_[k])});
  }
  return steps;
}

}  // namespace perseus::site_emulator
