// The result of `perseus site emulate` as text, JSON and a page.
//
// Input:   a day, its description, and its runs with their figures, optimum first.
// Output:  watts of the accelerators; rates of full speed.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/report/report.h"
#include "planning/model/site_description.h"
#include "planning/model/site_objective.h"
#include "simulation/site_emulator/day_figures.h"
#include "simulation/site_emulator/site_day.h"
#include "site/site_jobs.h"

namespace perseus::cli {

struct EmulatedDay {
  site_emulator::DayRun run;
  site_emulator::DayFigures figures;
};

struct SiteDayReport {
  const model::SiteDescription* description = nullptr;
  const PlannedSite* planned = nullptr;
  const site_emulator::SiteDay* day = nullptr;
  model::SiteObjective objective = model::SiteObjective::slowdown;
  std::vector<EmulatedDay> methods = {};
};

std::vector<report::ReportFact> facts_of(const SiteDayReport& report);
std::string site_day_text(const SiteDayReport& report);
boost::json::object site_day_json(const SiteDayReport& report);
Status check_site_day(const std::string& directory);
Status write_site_day(const std::string& directory, const SiteDayReport& report);

/// The day of a described site, with its planned jobs.
/// Input:   a description and the jobs planned for it; both must outlive the day.
/// Output:  limits of events in W of the accelerators.
site_emulator::SiteDay day_of(const model::SiteDescription& site, const PlannedSite& planned);

}  // namespace perseus::cli
