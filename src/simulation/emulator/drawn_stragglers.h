// Draws a scenario's stragglers and derives their effect on a pipeline.
//
// draw_stragglers() returns the scenario's own stragglers and those drawn from its distributions. Each pipeline and
// distribution has its own stream of random numbers, so that one more distribution does not change the others' draws.
// check_stragglers() checks that they fit the pipelines. condition_of() returns the condition of a pipeline of a kind
// while some of them last: the worst per stage, and the worst stall.
//
// Output:  ordered by onset, then pipeline; the same for the same seed.
// Errors:  invalid_input, from Hardship::where: a stage or GPUs that the pipeline lacks, a failure that leaves more
//          GPUs than there were, more than kMaxStragglers draws.
// Cost:    O(stragglers log stragglers).
// Source:  paper section 2.2.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "planning/model/scenario.h"
#include "simulation/emulator/cluster.h"
#include "simulation/emulator/condition.h"

namespace perseus::emulator {

inline constexpr std::size_t kMaxStragglers = 1'000'000;

Status check_stragglers(const model::Scenario& scenario, const std::vector<PipelineKind>& kinds);
Result<std::vector<model::Straggler>> draw_stragglers(const model::Scenario& scenario,
                                                      const std::vector<PipelineKind>& kinds);

Condition condition_of(const std::vector<const model::Hardship*>& hardships, const PipelineKind& kind);

/// The kind of that pipeline at the start.
int kind_of_pipeline(const std::vector<PipelineKind>& kinds, int pipeline);

}  // namespace perseus::emulator
