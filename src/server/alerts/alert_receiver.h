// The receiver of alerts: where the webhook sends them.
//
// Errors:  check_receiver_url(): usage, without the parts of the URL that may be secrets: user, path and query.
// Threads: pure functions.
#pragma once

#include <string>

#include "base/result.h"

namespace perseus::alerts {

struct AlertReceiver {
  std::string url;    ///< with path and query; empty: alerts are not sent
  std::string token;  ///< bearer token; empty: none
  bool operator==(const AlertReceiver&) const = default;
};

/// Ok for http:// or https://, a host, and optionally a port, a path and a query.
Status check_receiver_url(const std::string& url);
/// "https://hooks.example.org:8443" of such a URL
std::string host_of_receiver(const std::string& url);
/// The path and the query, unchanged.
std::string target_of_receiver(const std::string& url);

}  // namespace perseus::alerts
