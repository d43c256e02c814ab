// Writes a profile as CSV: `stage,instruction,frequency,time,energy`, as read_profile_csv() reads it.
//
// Stages with merged ranks get a `rank` column, and each rank its share of the energy. Any spread is written too, as
// `time_stddev,energy_stddev,samples`. Numbers are the shortest text that reads back the same; only where ranks were
// merged the last digits of their shares may differ.
#pragma once

#include <string>

#include "planning/model/profile.h"

namespace perseus::formats {

std::string format_profile_csv(const model::Profile& profile);

}  // namespace perseus::formats
