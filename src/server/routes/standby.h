// What a server answers while another one may write to its database.
//
// Input:   the address of the other server; a request.
// Output:  /healthz and /metrics: 200. Everything else, /readyz too: 503 with Retry-After, the other server's address,
//          and http::kStandbyHeader, at which clients with a list of servers try the next one.
// Errors:  none.
// Threads: pure.
// Source:  docs/decisions/0066.
#pragma once

#include <string_view>

#include "io/http/http_message.h"

namespace perseus::routes {

http::HttpResponse standby_answer(const http::HttpRequest& request, std::string_view active);

}  // namespace perseus::routes
