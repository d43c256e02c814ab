// The input of a request beside its path: query parameters, a body, an idempotency key.
//
// Output:  values; Parameters::error() also names parameters that the call does not accept, so that a typo is not
//          ignored.
// Errors:  name, value and what is allowed.
// Threads: io thread.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/formats/described_json.h"
#include "server/jobs/meter_readings.h"
#include "server/jobs/site_admission.h"
#include "server/jobs/site_document.h"
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
  /// The parameter `limit`: a number of `what` from 1 to `most`.
  std::size_t limit(std::string_view what, std::size_t otherwise, std::size_t most);
  /// The parameter `after`: where the page before ended, which `parse` reads.
  template <class Place>
  std::optional<Place> after(std::optional<Place> (*parse)(std::string_view)) {
    const auto text = this->text("after");
    auto place = text ? parse(*text) : std::nullopt;
    if (text && !place && !error_) error_ = wrong_parameter("after", *text, "'next' of the previous page");
    return place;
  }
  [[nodiscard]] std::optional<Error> error() const;

 private:
  const http::HttpRequest& request_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

/// Empty: the request has none. The quotes of the draft standard are optional.
Result<std::string> idempotency_key_of(const http::HttpRequest& request);

/// too_large for a JSON text of too many values, which take some 70 bytes each while they are read.
Status check_values(std::string_view json);

/// Of a call without members.
struct NoBody {};
/// The members of a policy; the path names its kind.
struct PolicyBody {
  std::string json;
};

template <class T>
Result<T> parse_body(std::string_view text) {
  if (Status checked = check_values(text); !checked) return checked.error();
  auto body = formats::parse_json_as<T>(text, "body");
  if (!body) return Error{ErrorCode::invalid_input, body.error().message};
  return body;
}
/// Of a form whose parser is of the module jobs, or of an older protocol.
template <>
Result<ParsedExchange> parse_body(std::string_view text);
template <>
Result<jobs::SiteDocument> parse_body(std::string_view text);
template <>
Result<std::vector<jobs::MeterReading>> parse_body(std::string_view text);
template <>
Result<jobs::AdmissionRequest> parse_body(std::string_view text);
template <>
Result<PolicyBody> parse_body(std::string_view text);
template <>
Result<NoBody> parse_body(std::string_view text);
template <>
Result<LegacyJob> parse_body(std::string_view text);
template <>
Result<LegacyRank> parse_body(std::string_view text);
template <>
Result<ArtifactRank> parse_body(std::string_view text);
template <>
Result<LegacyResult> parse_body(std::string_view text);

template <class T>
void Api::take_body(Call call, void (Api::*handler)(Call, T)) {
  const std::size_t size = call.request.body.size();
  if (size <= kSmallBody || options_.host == nullptr) {
    auto body = parse_body<T>(call.request.body);
    return body ? (this->*handler)(std::move(call), *std::move(body)) : call.fail(body.error());
  }
  // The call moves along: what it holds must not end on the other thread.
  auto asked = std::make_shared<Call>(std::move(call));
  auto work = [this, handler, asked]() mutable -> std::function<void()> {
    const auto body = std::make_shared<Result<T>>(parse_body<T>(asked->request.body));
    return [this, handler, body, asked = std::move(asked)] {
      *body ? (this->*handler)(std::move(*asked), std::move(**body)) : asked->fail(body->error());
    };
  };
  if (!large_bodies_.add(asked->identity.token, size, std::move(work))) {
    asked->fail({ErrorCode::unavailable, "too many large requests at once: try again"});
  }
}

/// The part of a history that a request asks for: steps that begin within [from, until). Without times: the last day in
/// minutes, the last year in longer ones; the step that has begun at this moment is the last one.
struct TimeRange {
  std::int64_t step_s = 0, from_s = 0, until_s = 0;
  std::size_t limit = 0;
};

/// Of `step`, `from`, the end and `limit`. `end`: the parameter's name. `most`: the greatest limit, which is the
/// default.
Result<TimeRange> time_range(Parameters& parameters, std::string_view end, std::size_t most, double now_s);

}  // namespace perseus::routes
