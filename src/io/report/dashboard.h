// The server's dashboard as one page: HTML, style and scripts in one text that requests only the server's /v1.
//
// Output:  UTF-8 HTML with its own content policy (only its own scripts, by hash; requests to its own server only).
//          It contains no data and no secret, so it may be sent to any client.
// Cost:    copies 0.6 MB: make it once and keep it.
// Source:  web/src/dashboard, where api.js lists the page's requests; docs/dashboard.md.
#pragma once

#include <string>
#include <string_view>

namespace perseus::report {

std::string dashboard_page();

/// An HTTP entity tag of that text, with its quotes: the same for every program built from the same web/dist.
std::string entity_tag(std::string_view text);

}  // namespace perseus::report
