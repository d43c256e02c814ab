// The view of a site's power, and the answer to a request to admit a job, as JSON; docs/openapi.json documents them.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "server/service/site_admissions.h"
#include "server/service/site_power_view.h"

namespace perseus::routes {

std::string site_power_json(const service::SitePowerView& view);
std::string admission_json(const service::Admission& admission);

}  // namespace perseus::routes
