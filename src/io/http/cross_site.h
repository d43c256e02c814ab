// Rejects requests that web pages of other sites send to this server through a user's browser.
//
// Problem: any page can send requests to a server on loopback, and can read the answers if its own host name resolves
//          to that server (DNS rebinding).
// Input:   a request; the names by which clients know the server (none given: any, see below).
// Output:  nothing, or the error response.
// Errors:  403 for an unknown host and for other sites' pages, 415 for a body that is not declared as JSON.
// Cost:    inspects four headers.
// Source:  Fetch Metadata Request Headers (W3C), RFC 6454 (Origin). docs/security.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/http/http_message.h"

namespace perseus::http {

struct KnownHosts {
  bool any = false;                ///< also unlisted names: callers must send a token anyway
  std::vector<std::string> names;  ///< besides addresses, localhost and names that end in .localhost

  /// `host` as a Host header has it: with or without a port.
  [[nodiscard]] bool has(std::string_view host) const;
};

/// For every request except those for pages and probes, which any page may load.
std::optional<HttpResponse> refused_across_sites(const HttpRequest& request, const KnownHosts& hosts);

}  // namespace perseus::http
