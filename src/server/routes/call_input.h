// The input of a request beside its path: query parameters, a body, an idempotency key.
//
// Output:  values; Parameters::error() also names parameters that the call does not accept, so that a typo is not
//          ignored.
// Errors:  name, value and what is allowed; body_of() answers the call with the error.
// Threads: io thread.
#pragma once

#include <charconv>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/formats/described_json.h"
#include "server/routes/api.h"

namespace perseus::routes {

Error wrong_parameter(std::string_view name, std::string_view value, std::string_view expected);

template <class Number>
Result<Number> number_from(std::string_view name, std::string_view text, std::string_view expected) {
  Number number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || problem != std::errc{} || end != text.data() + text.size() || !(number >= 0)) {
    return wrong_parameter(name, text, expected);
  }
  return number;
}

/// The query parameters that a call accepts; others are an error, so that a typo is not ignored.
class Parameters {
 public:
  explicit Parameters(const http::HttpRequest& request) : request_(request) {}

  template <class Number>
  std::optional<Number> take(std::string_view name, std::string_view expected) {
    known_.emplace(name);
    const auto text = request_.parameter(name);
    if (!text) return std::nullopt;
    auto number = number_from<Number>(name, *text, expected);
    if (number) return *number;
    if (!error_) error_ = number.error();
    return std::nullopt;
  }
  std::optional<std::string> text(std::string_view name) {
    known_.emplace(name);
    const auto found = request_.parameter(name);
    return found ? std::optional<std::string>(*found) : std::nullopt;
  }
  [[nodiscard]] std::optional<Error> error() const;

 private:
  const http::HttpRequest& request_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

/// Empty: the request has none. The quotes of the draft standard are optional.
Result<std::string> idempotency_key_of(const http::HttpRequest& request);

template <class T>
std::optional<T> body_of(const Call& call) {
  auto body = formats::parse_json_as<T>(call.request.body, "body");
  if (body) return std::move(*body);
  call.fail({ErrorCode::invalid_input, body.error().message});
  return std::nullopt;
}

}  // namespace perseus::routes
