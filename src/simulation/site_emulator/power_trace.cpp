#include "simulation/site_emulator/power_trace.h"

#include <algorithm>
#include <cmath>

namespace perseus::site_emulator {
namespace {

/// Energy of the run from its beginning to `time_s`.
double energy_until(const IterationRun& run, double time_s) {
  const double since_s = time_s - run.start_s;
  if (run.times == 1) return run.energy->at_s(since_s);
  const double whole = std::min(std::floor(since_s / run.period_s), static_cast<double>(run.times));
  return whole * run.energy->whole_j() + run.energy->at_s(std::max(0.0, since_s - whole * run.period_s));
}

}  // namespace

PowerTrace::PowerTrace(Seconds from, Seconds width, std::size_t bins, std::size_t slots)
    : from_s_(from.value()), width_s_(width.value()), energy_j_(slots, std::vector<double>(bins)) {}

void PowerTrace::add(std::size_t slot, const IterationRun& run, double factor) {
  std::vector<double>& bins = energy_j_[slot];
  const double until_s = from_s_ + width_s_ * static_cast<double>(bins.size());
  const double begin_s = std::max(run.start_s, from_s_);
  const double end_s = std::min(run.start_s + static_cast<double>(run.times) * run.period_s, until_s);
  if (begin_s >= end_s) return;
  double before_j = energy_until(run, begin_s);
  for (auto bin = static_cast<std::size_t>((begin_s - from_s_) / width_s_); bin < bins.size(); ++bin) {
    const double edge_s = std::min(end_s, from_s_ + width_s_ * static_cast<double>(bin + 1));
    const double here_j = energy_until(run, edge_s);
    bins[bin] += factor * (here_j - before_j);
    before_j = here_j;
    if (edge_s >= end_s) break;
  }
}

void PowerTrace::add_slot(std::size_t from, std::size_t to) {
  for (std::size_t k = 0; k < energy_j_[to].size(); ++k) energy_j_[to][k] += energy_j_[from][k];
}

std::vector<double> PowerTrace::power_w(std::size_t slot) const {
  std::vector<double> power = energy_j_[slot];
  for (double& bin : power) bin /= width_s_;
  return power;
}

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
