// What a job with a known profile can draw: its plans and its power at maximum clock, from a frontier in the store.
//
// Input:   the key of a frontier, or the name of a stored profile; the job's accelerators.
// Output:  as planned; without clocks (PowerChoices::at_clocks).
// Errors:  not_found: no such profile; unavailable: its frontier is not planned yet; those of the store.
// Cost:    reads and parses the frontier: call it off the io thread.
// Threads: pure functions.
#pragma once

#include <string>

#include "base/result.h"
#include "server/jobs/pipeline_input.h"
#include "server/policies/deployment.h"
#include "server/store/store.h"

namespace perseus::power {

Result<policies::PowerChoices> choices_of_frontier(store::Store& store, const std::string& key, int accelerators,
                                                   const std::string& whose);
Result<policies::PowerChoices> choices_of_profile(store::Store& store, const std::string& name, int accelerators,
                                                  const jobs::InputLimits& limits);

}  // namespace perseus::power
