// HTTP requests and responses as values, independent of the transport.
//
// Problem: routes and tests need requests without a socket or a library's types.
// Input:   a target's text for parse_target().
// Output:  HttpRequest with decoded path and query (percent signs, and '+' in the query), query pairs in order of
//          arrival; HttpResponse, whose body may be shared by thousands of answers.
// Errors:  Result.
// Cost:    one copy.
// Threads: values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace perseus::http {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

struct HttpTarget {
  std::string path;   ///< decoded, starts with '/'
  NamedValues query;  ///< decoded, in order; a name may come twice
};

struct HttpRequest {
  std::string method;  ///< "GET", as it came
  std::string path;    ///< decoded, starts with '/'
  NamedValues query;   ///< decoded, in order; a name may come twice
  NamedValues headers;
  std::string body;
  std::string peer;  ///< the client's address, without port
  bool tls = false;
  bool while_draining = false;  ///< its connection was opened after drain() began

  /// The first value of a query parameter.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
  /// The first value of a header; names are compared without case.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::shared_ptr<const std::string> body;  ///< none: empty
  NamedValues headers;                      ///< beyond Content-Type, Content-Length, Date and Connection
};

HttpResponse json_response(int status, std::string body);
/// {"detail": MESSAGE, "error": {"code", "message"}}, the code of that status in base/error_table.h, usage for others.
HttpResponse error_response(int status, std::string_view message);

/// Case-insensitive comparison of header and host names: ASCII letters only.
bool same_without_case(std::string_view a, std::string_view b);
std::string_view reason_phrase(int status);
/// The segments between a path's slashes; views into it.
std::vector<std::string_view> path_segments(std::string_view path);
Result<HttpTarget> parse_target(std::string_view target);
/// For paths and query values: everything but letters, digits and -._~ becomes %XX.
std::string percent_encode(std::string_view text);

struct Url {
  bool tls = false;
  std::string host;
  std::uint16_t port = 80;
  std::string path;      ///< without a trailing '/': "" or "/prefix"
  std::string password;  ///< of "user:password@", decoded: a token
};
/// http:// or https://, a host, optionally a port and a path.
Result<Url> parse_url(std::string_view url);
/// The URL for logs and errors, without the part before '@', which may be a token.
std::string without_user(std::string_view url);

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
/// "127.0.0.1:7787", "[::1]:7787", "localhost:0".
Result<HostPort> parse_host_port(std::string_view text);
/// True if only this machine can connect to a listener there.
bool is_loopback_host(std::string_view host);
/// The inverse of parse_host_port(): an IPv6 address in brackets.
std::string format_host_port(const HostPort& address);

}  // namespace perseus::http
