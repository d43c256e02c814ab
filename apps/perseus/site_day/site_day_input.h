// The day of a described site, with its planned jobs.
//
// Input:   a description and the jobs planned for it; both must outlive the day.
// Output:  limits of events in W of the accelerators.
#pragma once

#include "planning/model/site_description.h"
#include "simulation/site_emulator/site_day.h"
#include "site/site_jobs.h"

namespace perseus::cli {

site_emulator::SiteDay day_of(const model::SiteDescription& site, const PlannedSite& planned);

}  // namespace perseus::cli
