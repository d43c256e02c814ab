// Power at maximum clock, per accelerator, of a frontier in the store: what a job with such a profile will count as.
//
// Input:   the key of a frontier, or the name of a stored profile.
// Output:  as drawn if GPUs draw what the profile says.
// Errors:  not_found: no such profile; unavailable: its frontier is not planned yet; those of the store.
// Cost:    reads and parses the frontier: call it off the io thread.
// Threads: pure functions.
#pragma once

#include <string>

#include "base/result.h"
#include "base/units.h"
#include "server/jobs/pipeline_input.h"
#include "server/store/store.h"

namespace perseus::service {

Result<Watts> power_of_frontier(store::Store& store, const std::string& key, const std::string& whose);
Result<Watts> power_of_profile(store::Store& store, const std::string& name, const jobs::InputLimits& limits);

}  // namespace perseus::service
