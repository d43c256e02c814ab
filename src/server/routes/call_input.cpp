#include "server/routes/call_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "server/savings/job_history.h"

namespace perseus::routes {

Error wrong_parameter(std::string_view name, std::string_view value, std::string_view expected) {
  return {ErrorCode::usage, fmt::format("'{}' is '{}'; expected {}", name, value, expected)};
}

Status check_values(std::string_view json) {
  constexpr std::int64_t most = std::int64_t{1} << 20U;  // a report of 200,000 iterations has 800,000
  std::int64_t values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (in_string && json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && (json[i] == ',' || json[i] == '[' || json[i] == '{')) {
      ++values;
    }
  }
  if (values <= most) return Ok{};
  return Error{ErrorCode::too_large, fmt::format("body: about {} JSON values; allowed: {}", values, most)};
}

namespace {

template <class Value>
Result<Value> parse_checked(std::string_view text, Result<Value> (*parse)(std::string_view, const std::string&)) {
  if (Status checked = check_values(text); !checked) return checked.error();
  return parse(text, "body");
}

}  // namespace

template <>
Result<jobs::SiteDocument> parse_body(std::string_view text) {
  return parse_checked(text, jobs::parse_site_document);
}

template <>
Result<std::vector<jobs::MeterReading>> parse_body(std::string_view text) {
  return parse_checked(text, jobs::parse_meter_readings);
}

template <>
Result<jobs::AdmissionRequest> parse_body(std::string_view text) {
  return parse_checked(text, jobs::parse_admission_request);
}

template <>
Result<PolicyBody> parse_body(std::string_view text) {
  const auto alone = parse_checked(text, formats::parse_json);  // one value: the log has it as a member
  if (!alone) return alone.error();
  return PolicyBody{std::string(text)};
}

template <>
Result<NoBody> parse_body(std::string_view text) {
  if (text.empty()) return NoBody{};
  const auto document = parse_checked(text, formats::parse_json);
  if (!document) return document.error();
  formats::JsonFields none(document->root());
  none.reject_others();
  if (none.error()) return *none.error();
  return NoBody{};
}

std::size_t Parameters::limit(std::string_view what, std::size_t otherwise, std::size_t most) {
  const std::string allowed = fmt::format("a number of {} from 1 to {}", what, most);
  const auto limit = take<std::size_t>("limit", allowed).value_or(otherwise);
  if ((limit < 1 || limit > most) && !error_) error_ = wrong_parameter("limit", std::to_string(limit), allowed);
  return limit;
}

std::optional<Error> Parameters::error() const {
  if (error_) return error_;
  for (const auto& [name, value] : request_.query) {
    if (known_.contains(name)) continue;
    return Error{ErrorCode::usage, fmt::format("unknown parameter '{}'; allowed: {}", name,
                                               known_.empty() ? "none" : fmt::format("{}", fmt::join(known_, ", ")))};
  }
  return std::nullopt;
}

Result<std::string> idempotency_key_of(const http::HttpRequest& request) {
  constexpr std::size_t shortest = 16, longest = 128;
  std::string_view key = request.header("Idempotency-Key").value_or("");
  if (key.size() >= 2 && key.front() == '"' && key.back() == '"') key = key.substr(1, key.size() - 2);
  if (!request.header("Idempotency-Key")) return std::string();
  const bool plain = std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7F && c != '"' && c != '\\'; });
  if (plain && key.size() >= shortest && key.size() <= longest) return std::string(key);
  return Error{ErrorCode::usage,
               fmt::format("Idempotency-Key: {} bytes; allowed: {} to {} visible ASCII characters without quotes, such "
                           "as a UUID",
                           key.size(), shortest, longest)};
}

namespace {

constexpr std::string_view kTimes = "seconds since 1970";
constexpr double kLatest_s = 1e11;

}  // namespace

Result<TimeRange> time_range(Parameters& parameters, std::string_view end, std::size_t most, double now_s) {
  const std::string step = parameters.text("step").value_or("minute");
  const auto from_s = parameters.take<double>("from", kTimes);
  const auto until_s = parameters.take<double>(end, kTimes);
  const std::size_t limit = parameters.limit("steps", most, most);
  if (const auto error = parameters.error()) return *error;
  const auto step_s = savings::step_named(step);
  if (!step_s) return wrong_parameter("step", step, savings::kStepNames);
  if (from_s && *from_s > kLatest_s) return wrong_parameter("from", *parameters.text("from"), kTimes);
  if (until_s && *until_s > kLatest_s) return wrong_parameter(end, *parameters.text(end), kTimes);
  if (from_s && until_s && *from_s > *until_s) {
    return wrong_parameter("from", *parameters.text("from"),
                           fmt::format("a time before '{}', which is {}", end, *parameters.text(end)));
  }
  TimeRange range{*step_s, 0, static_cast<std::int64_t>(std::ceil(until_s.value_or(now_s + 1))), limit};
  const std::int64_t longest_s = (*step_s == store::kMinute_s ? 1 : 366) * savings::kDay_s;
  const double default_s = std::max(0.0, static_cast<double>(range.until_s - longest_s));
  const auto begin_s = static_cast<std::int64_t>(from_s.value_or(default_s));
  range.from_s = begin_s - begin_s % range.step_s;
  return range;
}

}  // namespace perseus::routes
