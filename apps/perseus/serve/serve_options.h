// Converts the settings of `perseus serve` to the options of its parts.
//
// Input:   settings.
// Output:  options; members without a setting keep their default. All of a part's limits are in them, so the same
//          functions handle the start and a reload.
// Errors:  none.
// Threads: any.
#pragma once

#include "io/http/http_server.h"
#include "serve/serve_config.h"
#include "server/routes/api.h"
#include "server/service/service.h"

namespace perseus::cli {

http::HttpServerOptions http_options(const ServeConfig& config);
service::ServiceOptions service_options(const ServeConfig& config);
routes::ApiOptions api_options(const ServeConfig& config);

}  // namespace perseus::cli
