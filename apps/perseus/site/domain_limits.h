// Reads and replaces the limits of one domain in the site that a server keeps.
//
// Problem: the server takes a site as a whole (PUT /v1/site), and an operator may replace it at any time.
// Input:   a server with a site; the domain's name; steps of watts, and which limits cannot be read (`limits_unread`).
// Output:  everything else in the site stays. A first step holds from the beginning of time, so that a server whose
//          clock is behind has no gap. If others change the site between reading and writing, it is read again, up to
//          kMostTries times.
// Errors:  the server's; not_found with the names of the domains.
// Cost:    one call to read, two to replace, per try.
// Threads: any.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/http/http_client.h"
#include "server/jobs/site_body.h"
#include "server/openadr/event_follower.h"

namespace perseus::cli {

/// "[{"limit_w":900000},{"from_s":1773480600,"limit_w":600000},{"from_s":1773484200}]"; no limit_w: no limit.
std::string limits_json(const std::vector<openadr::WattStep>& steps);

/// The domain with that name; not_found, with the names that are there.
Result<jobs::DomainBody*> domain_in(jobs::SiteBody& site, const std::string& name);

inline constexpr int kMostTries = 10;
/// Replaces the site by what `change` makes of it. Returns the server's answer.
Result<std::string> change_site(const http::HttpPeer& server, const std::function<Status(jobs::SiteBody&)>& change);

Result<openadr::SentLimits> limits_of_domain(const http::HttpPeer& server, const std::string& domain);
Status replace_limits(const http::HttpPeer& server, const std::string& domain, const openadr::SentLimits& limits);

}  // namespace perseus::cli
