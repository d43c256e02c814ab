// Reads and replaces the limits of one domain in the site that a server keeps.
//
// Problem: the server takes a site as a whole (PUT /v1/site), and an operator may replace it at any time.
// Input:   a server with a site; the domain's name; steps of watts, and which limits cannot be read (`limits_unread`).
// Output:  everything else in the site stays. A first step holds from the beginning of time, so that a server whose
//          clock is behind has no gap. If others change the site between reading and writing, it is read again, up to
//          kMostTries times.
// Errors:  the server's; not_found with the names of the domains.
// Cost:    one call to read, two to replace, per try.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/http_client.h"
#include "server/openadr/event_follower.h"

namespace perseus::cli {

/// "[{"limit_w":900000},{"from_s":1773480600,"limit_w":600000},{"from_s":1773484200}]"; no limit_w: no limit.
std::string limits_json(const std::vector<openadr::WattStep>& steps);

/// The server's answer to GET /v1/site; unavailable: it is not an object.
Result<boost::json::value> site_in(const std::string& body);
/// The domain with that name; null: there is none.
boost::json::object* find_domain(boost::json::object& site, std::string_view name);
/// The same; not_found, with the names that are there.
Result<boost::json::object*> domain_in(boost::json::value& site, const std::string& name);

inline constexpr int kMostTries = 10;
/// Replaces the site by what `change` makes of it. Returns the server's answer.
Result<std::string> change_site(const http::HttpPeer& server,
                                const std::function<Result<std::string>(const std::string&)>& change);

Result<openadr::SentLimits> limits_of_domain(const http::HttpPeer& server, const std::string& domain);
Status replace_limits(const http::HttpPeer& server, const std::string& domain, const openadr::SentLimits& limits);

}  // namespace perseus::cli
