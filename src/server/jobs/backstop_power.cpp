#include "server/jobs/backstop_power.h"

#include <algorithm>
#include <cmath>

namespace perseus::jobs {

Watts backstop_power(const Job& job, const PowerBudget& budget, const CharacterizedPipeline& pipeline, int point,
                     int stage_rank) {
  const model::ComputationDag& dag = pipeline.dag;
  const model::Plan& plan = pipeline.frontier.points[point].plan;
  const int accelerators = std::max(dag.accelerators[stage_rank], 1);
  Watts most = accelerators * dag.blocking_power;
  for (const int computation : dag.rank_order[stage_rank]) {
    const std::vector<model::Measurement>& options = dag.type_of(computation).options;
    for (const model::Measurement& option : options) {
      const bool planned = &option == &options[plan[computation]];
      const bool at_ceiling = option.clock.value() <= budget.ceiling_mhz || &option == &options.back();
      if ((planned || at_ceiling) && option.time > Seconds(0)) most = std::max(most, option.energy / option.time);
    }
  }
  const double correction = job.grant ? std::max(job.grant->correction, 1.0) : 1;
  return Watts(std::ceil((most * (correction * kBackstopMargin) / accelerators).value()));
}

}  // namespace perseus::jobs
