// Refuses what a web page of another site sends to this server through somebody's browser.
//
// Problem: a page from anywhere can send requests to a server on loopback, and read the answers if its own name is
//          made to lead there (DNS rebinding).
// Input:   a request; the names by which clients know the server (none given: any, see below).
// Output:  nothing, or the refusal to answer with.
// Errors:  403 for a host that is not known and for other sites' pages, 415 for a body that is not said to be JSON.
// Cost:    a look at four headers.
// Threads: pure function.
// Source:  Fetch Metadata Request Headers (W3C), RFC 6454 (Origin). docs/security.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/http/http_message.h"

namespace perseus::http {

struct KnownHosts {
  bool any = false;                ///< also names that are not in the list: callers must show a token anyway
  std::vector<std::string> names;  ///< beside addresses, localhost and names that end in .localhost

  /// `host` as a Host header has it: with or without a port.
  [[nodiscard]] bool has(std::string_view host) const;
};

/// For every request but those of pages and probes, which any page may load.
std::optional<HttpResponse> refused_across_sites(const HttpRequest& request, const KnownHosts& hosts);

}  // namespace perseus::http
