#include "simulation/emulator/pipeline_iteration.h"

#include <algorithm>

#include "planning/checker/plan_run.h"

namespace perseus::emulator {

PipelineIteration iterate_pipeline(const model::ComputationDag& dag, const model::Plan& plan, Seconds switch_latency) {
  const checker::PlanRun run = checker::run_plan(dag, plan, {switch_latency});
  PipelineIteration iteration{run.makespan, run.computing_energy, run.effective_energy, {}};
  std::vector<PowerChange>& power = iteration.power;
  power.reserve(2 * plan.size());
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Seconds lasts = run.end[i] - run.start[i];
    // Late in a long iteration, a computation may be too short for the precision of its time.
    if (lasts <= Seconds(0)) continue;
    const double above_w = (run.energy_of[i] / lasts).value() - dag.blocking_power_of(static_cast<int>(i)).value();
    power.push_back({run.start[i].value(), above_w});
    power.push_back({run.end[i].value(), -above_w});
  }
  std::ranges::stable_sort(power, {}, &PowerChange::time_s);
  // One change for each moment: the sum of all ends and begins there.
  std::size_t last = 0;
  for (std::size_t i = 1; i < power.size(); ++i) {
    if (power[i].time_s == power[last].time_s) {
      power[last].by_w += power[i].by_w;
    } else {
      power[++last] = power[i];
    }
  }
  if (!power.empty()) power.resize(last + 1);
  power.shrink_to_fit();
  return iteration;
}

}  // namespace perseus::emulator
