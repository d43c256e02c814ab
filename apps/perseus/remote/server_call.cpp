#include "remote/server_call.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cmath>
#include <ctime>
#include <functional>
#include <utility>

#include "base/error_table.h"
#include "io/formats/boost_json_text.h"
#include "io/report/format.h"
#include "remote/answer_members.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr int kUnauthorized = 401;

Error error_of(const http::HttpPeer& peer, const http::HttpReply& reply) {
  const std::string shown_url = http::without_user(peer.url);
  if (reply.status == kUnauthorized && peer.token.empty() && shown_url == peer.url) {
    return {ErrorCode::unauthorized, fmt::format("{} requires a token; give --token or set PERSEUS_TOKEN", shown_url)};
  }
  boost::system::error_code problem;
  const json::value body = json::parse(reply.body, problem);
  const auto* detail = member_in(body, "detail");
  std::string message = detail != nullptr && detail->is_string()
                            ? std::string(detail->get_string().c_str())
                            : fmt::format("the server answered {} {}", reply.status, http::reason_phrase(reply.status));
  // A fault of the server, not of the request.
  if (reply.status >= 500) message = fmt::format("{}: {}", shown_url, message);
  return {code_of_http_status(reply.status), std::move(message)};
}

// Savings of an iteration, from the profile, under the plan in force and if all ranks set their clocks; waits of
// pacing.
constexpr std::array<std::string_view, 3> kEstimated{"per_iteration", "possible", "waits_not_counted"};
constexpr double kFirstInstant = 1e9;  // no duration is 31 years long

std::string span_text(double s) {
  constexpr double minute = 60, hour = 3600, day = 86400;
  if (std::abs(s) < 2 * minute) return report::text_of(Seconds(s));
  if (std::abs(s) < 2 * hour) return fmt::format("{:.1f} min", s / minute);
  if (std::abs(s) < 2 * day) return fmt::format("{:.1f} h", s / hour);
  return fmt::format("{:.1f} days", s / day);
}

std::string instant_text(double s) {
  if (s < 0 || s > 1e12) return span_text(s);
  return fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(s)));
}
std::string seconds_text(double s) { return s < kFirstInstant ? span_text(s) : instant_text(s); }
std::string ramp_text(double w_per_s) { return fmt::format("{:.6g} W/s", w_per_s); }
std::string joules_text(double j) { return report::text_of(Joules(j)); }
std::string watts_text(double w) { return report::text_of(Watts(w)); }
std::string price_text(double pct_per_kw) { return fmt::format("{:.3g} %/kW", pct_per_kw); }
std::string fraction_text(double part) { return report::percent(100 * part); }
std::string megahertz_text(double mhz) { return fmt::format("{:.6g} MHz", mhz); }

struct Unit {
  std::string_view ending;
  std::string (*text)(double);
};
constexpr std::array<Unit, 7> kUnits{
    Unit{"_w_per_s", ramp_text},   Unit{"_s", seconds_text},        Unit{"_j", joules_text},     Unit{"_w", watts_text},
    Unit{"_pct", report::percent}, Unit{"_pct_per_kw", price_text}, Unit{"_mhz", megahertz_text}};

// The beginning of a site's limit, never a duration.
constexpr std::string_view kInstantKey = "from_s";
constexpr Unit kInstant{"_s", instant_text};

// A part of the fastest plan's rate.
constexpr std::string_view kLostKey = "rate_lost";
constexpr Unit kLost{"", fraction_text};

const Unit* unit_of(std::string_view key) {
  if (key == kInstantKey) return &kInstant;
  if (key == kLostKey) return &kLost;
  for (const Unit& unit : kUnits) {
    if (key.size() > unit.ending.size() && key.ends_with(unit.ending)) return &unit;
  }
  return nullptr;
}

std::string scalar_text(const json::value& value, const Unit* unit) {
  if (const auto* string = value.if_string()) return std::string(string->data(), string->size());
  if (!value.is_number()) return formats::json_text(value);
  if (unit != nullptr) return unit->text(value.to_number<double>());
  return value.is_double() ? fmt::format("{:.6g}", value.get_double()) : formats::json_text(value);
}

bool has_lines(const json::value& value) {
  return (value.is_object() && !value.get_object().empty()) || (value.is_array() && !value.get_array().empty());
}

/// A number, or a list of numbers.
bool is_quantity(const json::value& value) {
  if (const auto* array = value.if_array()) return !array->empty() && array->front().is_number();
  return value.is_number();
}

void append_lines(std::string& text, const json::value& value, const std::string& indent, const Unit* unit) {
  if (!has_lines(value)) {
    text += indent + scalar_text(value, unit) + '\n';
  } else if (const auto* object = value.if_object()) {
    for (const auto& [name, member] : *object) {
      std::string_view key(name.data(), name.size());
      const Unit* own = is_quantity(member) ? unit_of(key) : nullptr;
      if (own != nullptr) key.remove_suffix(own->ending.size());
      const bool estimated = std::ranges::find(kEstimated, key) != kEstimated.end();
      text += fmt::format("{}{}{}:{}", indent, key, estimated ? " (est.)" : "", has_lines(member) ? "\n" : " ");
      append_lines(text, member, has_lines(member) ? indent + "  " : "", own);
    }
  } else {
    for (const json::value& element : value.get_array()) {
      const bool nested = has_lines(element);
      text += nested ? indent + "-\n" : indent + "- ";
      append_lines(text, element, nested ? indent + "  " : "", unit);
    }
  }
}

}  // namespace

std::shared_ptr<http::HttpPeer> add_server_options(CLI::App& subcommand) {
  auto peer = std::make_shared<http::HttpPeer>();
  peer->url = "http://127.0.0.1:7787";
  add_value(subcommand, "--server URL", peer->url,
            "URL of the server, or several with commas between (default http://127.0.0.1:7787)")
      ->envname("PERSEUS_SERVER");
  add_value(subcommand, "--token TOKEN", peer->token, "API token, if the server requires one")
      ->envname("PERSEUS_TOKEN");
  add_value(subcommand, "--ca FILE", peer->ca_file, "Certificates to trust instead of the system's (PEM)");
  return peer;
}

Result<http::HttpReply> reply_of_server(const http::HttpPeer& peer, const http::HttpCall& call) {
  auto reply = http::http_call(peer, call);
  if (reply && reply->status >= 300) return error_of(peer, *reply);
  return reply;
}

Result<std::string> call_server(const http::HttpPeer& peer, const http::HttpCall& call) {
  auto reply = reply_of_server(peer, call);
  if (!reply) return reply.error();
  return std::move(reply->body);
}

Result<std::string> call_server_with(const std::string& file, const http::HttpPeer& peer, const http::HttpCall& call) {
  auto reply = http::http_call(peer, call);
  if (!reply) return reply.error();
  if (reply->status < 300) return std::move(reply->body);
  Error refused = error_of(peer, *reply);
  if (refused.code == ErrorCode::usage || refused.code == ErrorCode::invalid_input) {
    refused = {ErrorCode::invalid_input, fmt::format("{}: {}", file, refused.message)};
  }
  return refused;
}

namespace {

/// The last page, with the rows of all in its member `list`. `following`: the page after an answer, if there is one.
Result<std::string> all_pages(const http::HttpPeer& peer, http::HttpCall page, std::string_view list,
                              const std::function<std::optional<std::string>(const json::value&)>& following) {
  json::array all;
  while (true) {
    const auto body = call_server(peer, page);
    if (!body) return body.error();
    boost::system::error_code problem;
    json::value answer = json::parse(*body, problem);
    json::array* const rows = list_to_change(answer, list);
    if (rows == nullptr) {
      return Error{ErrorCode::unavailable,
                   fmt::format("{} answered without a list of {}", http::without_user(peer.url), list)};
    }
    for (json::value& row : *rows) all.push_back(std::move(row));
    const auto next = following(answer);
    if (!next) {
      answer.get_object()[list] = std::move(all);
      return formats::json_text(answer);
    }
    page.target = *next;
  }
}

}  // namespace

Result<std::string> call_pages(const http::HttpPeer& peer, const http::HttpCall& call, std::string_view list) {
  return all_pages(peer, call, list, [&](const json::value& answer) -> std::optional<std::string> {
    const json::value* const next = member_in(answer, "next");
    if (next == nullptr || !(next->is_string() || next->is_int64())) return std::nullopt;
    const std::string after = next->is_string() ? std::string(next->get_string().c_str()) : formats::json_text(*next);
    return call.target + (call.target.find('?') == std::string::npos ? "?" : "&") +
           "after=" + http::percent_encode(after);
  });
}

Result<std::string> pages_in_time(const http::HttpPeer& peer, const std::string& target, std::optional<double> from_s,
                                  std::string_view list) {
  const std::string first = from_s ? fmt::format("{}&from={:.0f}", target, *from_s) : target;
  return all_pages(peer, {"GET", first, ""}, list, [&](const json::value& answer) -> std::optional<std::string> {
    const json::value* const next = member_in(answer, "next_s");
    if (next == nullptr || !next->is_int64()) return std::nullopt;
    return fmt::format("{}&from={}", target, next->get_int64());
  });
}

Result<int> print_answer(const http::HttpPeer& peer, const Result<std::string>& body, bool as_json) {
  if (!body) return body.error();
  if (as_json) {
    print(*body + "\n");
    return 0;
  }
  boost::system::error_code problem;
  const json::value value = json::parse(*body, problem);
  if (problem) {
    return Error{ErrorCode::unavailable,
                 fmt::format("{} sent an answer that is not JSON", http::without_user(peer.url))};
  }
  print(value.is_object() && value.get_object().empty() ? "done\n" : answer_text(value));
  return 0;
}

std::string member_text(std::string_view name, const json::value& value) { return scalar_text(value, unit_of(name)); }

std::string answer_text(const json::value& answer) {
  std::string text;
  append_lines(text, answer, "", nullptr);
  return text;
}

}  // namespace perseus::cli
