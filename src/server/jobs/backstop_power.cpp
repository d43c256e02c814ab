#include "server/jobs/backstop_power.h"

#include <algorithm>
#include <cmath>

#include "server/jobs/at_clock.h"
#include "server/jobs/drawn_power.h"

namespace perseus::jobs {
namespace {

/// `plan`: null: no clock is above the ceiling.
Watts limit_of_rank(int draws_more_pct, int ceiling_mhz, const model::ComputationDag& dag, const model::Plan* plan,
                    int stage_rank) {
  const int accelerators = std::max(dag.accelerators[stage_rank], 1);
  Watts most = accelerators * dag.blocking_power;
  for (const int computation : dag.rank_order[stage_rank]) {
    const std::vector<model::Measurement>& options = dag.type_of(computation).options;
    most = std::max(most, most_power(options, ceiling_mhz));
    if (plan == nullptr) continue;
    const model::Measurement& planned = options[(*plan)[computation]];
    if (planned.time > Seconds(0)) most = std::max(most, planned.energy / planned.time);
  }
  const double correction = 1 + 0.01 * draws_more_pct;
  return Watts(std::ceil((most * (correction * kBackstopMargin) / accelerators).value()));
}

}  // namespace

Watts backstop_power(const PowerBudget& budget, const CharacterizedPipeline& pipeline, int point, int stage_rank) {
  return limit_of_rank(budget.draws_more_pct, budget.ceiling_mhz, pipeline.dag, &pipeline.frontier.points[point].plan,
                       stage_rank);
}

Watts backstop_power_at(const PowerBudget& budget, int ceiling_mhz, const CharacterizedPipeline& pipeline,
                        int stage_rank) {
  return limit_of_rank(budget.draws_more_pct, ceiling_mhz, pipeline.dag, nullptr, stage_rank);
}

int backstop_step(double correction, int last_pct) {
  const auto step_above = [](double more) {
    constexpr double rounding = 1e-9;
    return kBackstopStep_pct * static_cast<int>(std::ceil(100 * std::max(more, 0.0) / kBackstopStep_pct - rounding));
  };
  return std::max(step_above(correction - 1), std::min(last_pct, step_above(correction - 1 + kCorrectionDeadBand)));
}

}  // namespace perseus::jobs
