// The result of `perseus site plan` as text, JSON and a page.
//
// Input:   a planned site, its intervals, what-if curves.
// Output:  watts of the accelerators, and as metered where the name says so; percent of full speed.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/report/report.h"
#include "planning/model/site_objective.h"
#include "site/site_jobs.h"

namespace perseus::cli {

/// More accelerators that the same watts feed at a rate.
struct HeadroomAtRate {
  double rate = 1;
  double more = 0;  ///< relative
};

struct DomainWhatIf {
  int domain = 0;
  std::vector<site::WhatIf> curve;
};

struct SitePlanReport {
  const model::SiteDescription* description = nullptr;
  const PlannedSite* planned = nullptr;
  model::SiteObjective objective = model::SiteObjective::slowdown;
  std::vector<site::Interval> intervals = {};
  std::vector<DomainWhatIf> what_if = {};  ///< the site, then its rows
  std::vector<HeadroomAtRate> headroom = {};
};

std::string site_plan_text(const SitePlanReport& report);
boost::json::object site_plan_json(const SitePlanReport& report);
/// The file names of a result, for OutputDirectory.
Status check_site_plan(const std::string& directory);
Status write_site_plan(const std::string& directory, const SitePlanReport& report);

}  // namespace perseus::cli
