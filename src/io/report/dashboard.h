// The server's dashboard as one page: HTML, style and scripts in one text that asks for nothing but the server's /v1.
//
// Output:  UTF-8 HTML with its own content policy (only its own scripts, by hash; requests to its own server only).
//          It holds no data and no secret, so it may be sent to anyone.
// Errors:  none.
// Cost:    0.6 MB copied: make it once and keep it.
// Threads: pure.
// Source:  web/src/dashboard, of which api.js says what the page asks for; docs/dashboard.md.
#pragma once

#include <string>
#include <string_view>

namespace perseus::report {

std::string dashboard_page();

/// An HTTP entity tag of that text, with its quotes: the same for every program built from the same web/dist.
std::string entity_tag(std::string_view text);

}  // namespace perseus::report
