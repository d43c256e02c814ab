// Finds measurements in a profile that no GPU makes: wrong units, swapped columns, a broken measurement.
//
// Input:   a valid profile; the power of a waiting accelerator, if it was measured.
// Output:  one sentence per kind of doubt, with the first case and the number of cases; none for a plausible profile.
// Errors:  none.
// Cost:    linear.
// Threads: pure function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "planning/model/profile.h"

namespace perseus::model {

std::vector<std::string> profile_doubts(const Profile& profile, std::optional<Watts> blocking_power);

}  // namespace perseus::model
