// Requests a list over time in pages: each answer names in next_s the time at which the next one begins.
//
// Output:  the last answer, with the lists of all pages in its member `list`.
// Errors:  the server's; unavailable for an answer without that list.
// Cost:    a request per page.
// Threads: one.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "io/http/http_client.h"

namespace perseus::cli {

/// `target`: with a query, to which the beginning is added.
Result<std::string> pages_in_time(const http::HttpPeer& peer, const std::string& target, std::optional<double> from_s,
                                  const char* list);

}  // namespace perseus::cli
