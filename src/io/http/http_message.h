// HTTP requests and responses as values, independent of the transport.
//
// Problem: routes and tests need requests without a socket or a library's types.
// Output:  HttpRequest with decoded segments and query (percent signs, and '+' in the query), query pairs in order of
//          arrival; HttpResponse, whose body may be shared by thousands of answers.
// Errors:  Result.
// Cost:    one copy.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/http/url.h"

namespace perseus::http {

struct HttpRequest {
  std::string method;                 ///< "GET", as it came
  std::string path;                   ///< as it was sent, starts with '/'
  std::vector<std::string> segments;  ///< of the path, decoded: path_segments()
  NamedValues query;                  ///< decoded, in order; a name may come twice
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

/// Of an answer of 503: another server serves, and this one has done nothing.
inline constexpr const char* kStandbyHeader = "Perseus-Standby";

HttpResponse json_response(int status, std::string body);
/// {"detail": MESSAGE, "error": {"code", "message"}}, the code of that status in base/error_table.h, usage for others.
HttpResponse error_response(int status, std::string_view message);

/// Case-insensitive comparison of header and host names: ASCII letters only.
bool same_without_case(std::string_view a, std::string_view b);
std::string_view reason_phrase(int status);

}  // namespace perseus::http
