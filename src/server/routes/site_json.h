// The view of a site's power, and the answer to a request to admit a job, as JSON; docs/openapi.json documents them.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/power/site_admissions.h"
#include "server/power/site_power_view.h"

namespace perseus::routes {

/// Rows of an answer, as made by site_domain_json() and site_job_json(), and of which changes they are.
struct SiteRows {
  std::string version, since;  ///< empty: the answer has none
  std::vector<std::string_view> domains, jobs;
  std::vector<std::string> gone;
};

/// All rows, without a version.
std::string site_power_json(const power::SitePowerView& view);
std::string site_domain_json(const power::SitePowerView& view, const power::SiteDomainView& domain);
std::string site_job_json(const power::SitePowerView& view, const power::SiteJobView& job);
std::string site_rows_json(const power::SitePowerView& view, const SiteRows& rows);
std::string admission_json(const power::Admission& admission);

}  // namespace perseus::routes
