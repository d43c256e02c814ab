// What steps of a scenario may expect of a rank's plan and of a job, by name.
//
// Threads: pure functions.
#pragma once

#include "server/jobs/requests.h"
#include "tests/server/scenario/scenario_step.h"

namespace perseus::testing {

ScenarioFacts facts_of(const jobs::PlanAnswer& answer);
ScenarioFacts facts_of(const jobs::JobView& view);

}  // namespace perseus::testing
