// What a domain of a server's site has drawn: mean powers as its meter reads them, for reports to a utility.
//
// Problem: not every domain has a meter, and ranks measure accelerators only.
// Method:  the metered power of each step of the proof. A step without one is estimated: what ranks measured, the plans
//          of all other jobs, and hosts, losses and cooling as the site's document has them.
// Input:   a server with a site; the domain's name; a time. Minutes, or hours for a time that began a day ago.
// Output:  by start; steps without readings are absent.
// Errors:  the server's; unavailable: its answer is not as documented.
// Cost:    two calls; more for more than 10,000 steps.
#pragma once

#include <string>
#include <vector>

#include "io/http/http_client.h"
#include "server/openadr/report_text.h"

namespace perseus::cli {

Result<std::vector<openadr::DrawnStep>> powers_of_domain(const http::HttpPeer& server, const std::string& domain,
                                                         double from_s, double to_s, double now_s);

}  // namespace perseus::cli
