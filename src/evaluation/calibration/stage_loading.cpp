#include "evaluation/calibration/stage_loading.h"

#include <algorithm>
#include <set>

namespace perseus::calibration {
namespace {

/// Loading of one microbatch, and the mean clock of the stage's forwards, in one plan.
struct LoadedPlan {
  double clock_mhz = 0;
  double loading_s = 0;
};

LoadedPlan loaded_plan(const model::TracedPlan& plan, int stage, int microbatches) {
  double sum_mhz = 0;
  int forwards = 0;
  for (const model::TracedComputation& c : plan.stages[stage]) {
    if (c.instruction != model::Instruction::forward) continue;
    sum_mhz += c.clock.value();
    ++forwards;
  }
  return {sum_mhz / std::max(1, forwards), plan.loading[stage].value() / microbatches};
}

/// Sets the line of loading over clock, if it predicts plans left out clearly better than their mean does.
void fit_rise(const std::vector<LoadedPlan>& plans, StageLoading& loading) {
  const auto n = static_cast<double>(plans.size());
  double xx = 0, xy = 0;
  for (const LoadedPlan& p : plans) {
    const double x = p.clock_mhz - loading.mean_mhz;
    xx += x * x;
    xy += x * (p.loading_s - loading.measured.value());
  }
  constexpr double least_plans = 3;  // two always lie on a line
  if (n < least_plans || xx <= 0) return;
  // Errors of each plan, by a fit to all others: its residual over one minus its leverage.
  std::vector<double> by_mean, by_line;
  for (const LoadedPlan& p : plans) {
    const double x = p.clock_mhz - loading.mean_mhz, residual = p.loading_s - loading.measured.value();
    const double leverage = 1 / n + x * x / xx;
    by_mean.push_back(residual / (1 - 1 / n));
    // A plan whose clock no other plan has alone determines the line.
    by_line.push_back(leverage < 1 - 1e-9 ? (residual - x * xy / xx) / (1 - leverage) : residual / (1 - 1 / n));
  }
  if (clearly_smaller(by_line, by_mean)) loading.rise_per_mhz = xy / xx / loading.measured.value();
}

}  // namespace

Seconds StageLoading::at(Megahertz clock) const {
  const double clamped_mhz = std::clamp<double>(clock.value(), lowest_mhz, highest_mhz);
  return per_microbatch.value * std::max(0.0, 1 + rise_per_mhz * (clamped_mhz - mean_mhz));
}

std::vector<StageLoading> measured_loading(const model::RunTrace& trace, std::span<const int> plans, int microbatches) {
  std::vector<StageLoading> loading;
  for (const int stage : std::set<int>{0, trace.num_stages() - 1}) {
    StageLoading found{stage, {}, {}};
    std::vector<LoadedPlan> loaded;
    for (const int p : plans) {
      loaded.push_back(loaded_plan(trace.plans[p], stage, microbatches));
      found.measured += Seconds(loaded.back().loading_s) / static_cast<double>(plans.size());
      found.mean_mhz += loaded.back().clock_mhz / static_cast<double>(plans.size());
    }
    if (found.measured <= Seconds(0)) continue;
    const auto [lowest, highest] = std::ranges::minmax_element(loaded, {}, &LoadedPlan::clock_mhz);
    found.lowest_mhz = lowest->clock_mhz;
    found.highest_mhz = highest->clock_mhz;
    found.per_microbatch = {found.measured, Seconds(0)};
    if (stage == 0 && trace.num_stages() > 1) fit_rise(loaded, found);
    loading.push_back(found);
  }
  return loading;
}

}  // namespace perseus::calibration
