// Random pipelines, including awkward ones: ties, dominated and repeated rows, noise, single options, constant-time
// operations, no blocking power, very small and very large energies, every schedule, and DAGs that are not pipelines.
#pragma once

#include <string>
#include <vector>

#include "oracles/dice.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/profile.h"

namespace perseus::testing {

struct InstanceLimits {
  int max_ranks = 4;
  int max_microbatches = 6;
  int max_options = 6;
  double max_plans = 1e300;  ///< options are dropped until there are no more plans than that
};

/// Options of one computation, highest clock first.
std::vector<model::Measurement> random_options(Dice& dice, int max_options, Watts blocking_power);
/// A profile with all that the named schedule runs.
model::Profile random_profile(Dice& dice, const model::Schedule& schedule, int max_options, Watts blocking_power);
model::ComputationDag random_pipeline(Dice& dice, const std::string& schedule_name, const InstanceLimits& limits);
model::ComputationDag random_generic_dag(Dice& dice, const InstanceLimits& limits);
/// Any of the above.
model::ComputationDag random_dag(Dice& dice, const InstanceLimits& limits = {});
model::Plan random_plan(Dice& dice, const model::ComputationDag& dag);

}  // namespace perseus::testing
