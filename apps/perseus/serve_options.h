// The settings of `perseus serve` as the options of its parts: what the configuration says of each.
//
// Input:   settings.
// Output:  options; what no setting names keeps its default. All of a part's limits are in them, so the same functions
//          serve the start and a reload.
// Errors:  none.
// Threads: any.
#pragma once

#include "io/http/http_server.h"
#include "serve_config.h"
#include "server/routes/api.h"
#include "server/service/service.h"

namespace perseus::cli {

http::HttpServerOptions http_options(const ServeConfig& config);
service::ServiceOptions service_options(const ServeConfig& config);
routes::ApiOptions api_options(const ServeConfig& config);

}  // namespace perseus::cli
