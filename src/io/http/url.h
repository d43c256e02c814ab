// URLs: request targets, percent-encoding, HOST:PORT.
//
// Input:   text of clients, command lines and settings.
// Output:  decoded parts. A path's segment or query may contain any byte; percent_encode() keeps only letters, digits
//          and -._~ (base/percent_encode.h).
// Errors:  usage, with the text and what is expected; the part of a URL before '@' is never shown.
// Source:  RFC 3986; docs/decisions (0048).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/percent_encode.h"
#include "base/result.h"

namespace perseus::http {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

struct HttpTarget {
  std::string path;                   ///< as it was sent, starts with '/'
  std::vector<std::string> segments;  ///< path_segments() of it
  NamedValues query;                  ///< decoded, in order; a name may come twice
};
Result<HttpTarget> parse_target(std::string_view target);
/// The segments between a path's slashes, each decoded: a "%2F" is a part of its segment. `path`: of parse_target().
std::vector<std::string> path_segments(std::string_view path);
using perseus::percent_encode;  // of paths and query values

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
/// "127.0.0.1:7787", "[::1]:7787", "localhost:0".
Result<HostPort> parse_host_port(std::string_view text);
/// The inverse of parse_host_port(): an IPv6 address in brackets.
std::string format_host_port(const HostPort& address);
/// True if only this machine can connect to a listener there.
bool is_loopback_host(std::string_view host);
/// An IPv4 or IPv6 address, without brackets.
bool is_address_literal(const std::string& host);

/// The parts of HOST or HOST:PORT, as a Host header or a URL has it; the host without the brackets of an IPv6 address.
struct HostText {
  std::string_view host;
  std::optional<std::string_view> port;  ///< may be anything without ':'
};
/// nullopt if there is no host, a bracket is missing, or an IPv6 address has none.
std::optional<HostText> split_host(std::string_view text);

struct Url {
  bool tls = false;
  HostPort address;      ///< port 80 or 443 if none is given
  std::string path;      ///< without a trailing '/': "" or "/prefix"
  std::string password;  ///< of "user:password@", decoded: a token
};
/// http:// or https://, a host, optionally a port and a path.
Result<Url> parse_url(std::string_view url);
/// One or several, with commas between.
Result<std::vector<Url>> parse_urls(std::string_view urls);
/// One URL or several for logs and errors, without the part before '@', which may be a token.
std::string without_user(std::string_view urls);

}  // namespace perseus::http
