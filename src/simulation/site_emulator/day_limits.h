// The limits of a day as the jobs' plans follow them, and as its meters judge them.
//
// Input:   announced limits per domain as steps, the first at 0 s; surprises; how long before an announced fall the
//          plans change; a guaranteed reaction.
// Output:  planned_limits(): at each time the least of the announced limits from then until `lead` later, and what
//          surprises allow from their beginning on. due_limits(): the announced limits, and surprises once `reaction`
//          is over. After a surprise both rise no faster than allowed, in steps of `ramp_step`.
// Cost:    O(steps x (steps + surprises)).
#pragma once

#include <vector>

#include "simulation/site_emulator/site_day.h"

namespace perseus::site_emulator {

using LimitSteps = std::vector<std::vector<model::LimitStep>>;

LimitSteps planned_limits(const SiteDay& day, Seconds lead);
LimitSteps due_limits(const SiteDay& day, Seconds reaction);

/// The times at which a limit of any domain changes, ascending, from 0 s.
std::vector<Seconds> change_times(const LimitSteps& limits, Seconds end);

}  // namespace perseus::site_emulator
