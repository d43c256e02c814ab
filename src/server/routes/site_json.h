// The view of a site's power as JSON; docs/openapi.json documents it.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "server/service/site_power_view.h"

namespace perseus::routes {

std::string site_power_json(const service::SitePowerView& view);

}  // namespace perseus::routes
