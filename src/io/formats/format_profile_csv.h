// Writes a profile as CSV: `stage,instruction,frequency,time,energy`, as read_profile_csv() reads it.
//
// Where ranks of a stage were merged there is a `rank` column, and each rank gets its share of the energy. Where
// there is any spread it is written too, as `time_stddev,energy_stddev,samples`. Numbers are the shortest text that
// reads back the same; only where ranks were merged the last digits of their shares may differ.
//
// Cost:    linear.
// Errors:  none.
// Threads: pure.
#pragma once

#include <string>

#include "planning/model/profile.h"

namespace perseus::formats {

std::string format_profile_csv(const model::Profile& profile);

}  // namespace perseus::formats
