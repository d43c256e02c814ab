#include "io/http/cross_site.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/http/url.h"

namespace perseus::http {
namespace {

std::string shown(std::string_view text) { return std::string(text.substr(0, 100)); }

/// Without port, brackets and the dot that ends a full name; empty if it is invalid.
std::string_view name_in(std::string_view text) {
  const auto parts = split_host(text);
  if (!parts || (parts->port && parts->port->find_first_not_of("0123456789") != std::string_view::npos)) return "";
  return parts->host.ends_with('.') ? parts->host.substr(0, parts->host.size() - 1) : parts->host;
}

/// Without the scheme's default port, which some proxies add.
std::string_view without_port_of(std::string_view scheme, std::string_view host) {
  const std::string_view port = scheme == "https" ? ":443" : ":80";
  return host.ends_with(port) ? host.substr(0, host.size() - port.size()) : host;
}

bool is_json(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return same_without_case(type.substr(0, type.find_last_not_of(" \t") + 1), "application/json");
}

}  // namespace

bool KnownHosts::has(std::string_view host) const {
  if (any) return true;
  const std::string_view name = name_in(host);
  constexpr std::string_view local = "localhost";
  if (same_without_case(name, local)) return true;
  if (name.size() > local.size() + 1 && same_without_case(name.substr(name.size() - local.size() - 1), ".localhost"))
    return true;
  if (is_address_literal(std::string(name))) return true;  // an address cannot be rebound to another host
  return std::ranges::any_of(names, [&](const std::string& known) { return same_without_case(known, name); });
}

std::optional<HttpResponse> refused_across_sites(const HttpRequest& request, const KnownHosts& hosts) {
  const std::string_view host = request.header("Host").value_or("");
  if (!hosts.has(host)) {
    return error_response(403,
                          fmt::format("unknown host name '{}'; if it is this server's, add it to the setting 'hosts', "
                                      "or use the server's address",
                                      shown(host)));
  }
  // A page on another port of the same machine is of the same site, but not of the same origin.
  const std::string_view site = request.header("Sec-Fetch-Site").value_or("none");
  if (site != "same-origin" && site != "none") {
    return error_response(403,
                          fmt::format("cross-site request of a web page refused (Sec-Fetch-Site: {})", shown(site)));
  }
  if (const auto origin = request.header("Origin")) {
    const std::size_t scheme = origin->find("://");
    const auto plain = [&](std::string_view text) { return without_port_of(origin->substr(0, scheme), text); };
    if (scheme == std::string_view::npos || !same_without_case(plain(origin->substr(scheme + 3)), plain(host))) {
      return error_response(403,
                            fmt::format("cross-site request of a web page refused (Origin: '{}')", shown(*origin)));
    }
  }
  // An HTML form can send types other than JSON without a preflight request.
  if (!request.body.empty()) {
    const std::string_view type = request.header("Content-Type").value_or("");
    if (!is_json(type)) {
      return error_response(415, fmt::format("Content-Type is '{}'; expected application/json", shown(type)));
    }
  }
  return std::nullopt;
}

}  // namespace perseus::http
