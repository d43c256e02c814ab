#include "server/openadr/vtn_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/percent_encode.h"
#include "io/formats/json_reader.h"
#include "io/formats/number.h"
#include "io/http/url.h"

namespace perseus::openadr {
namespace {

constexpr int kUnauthorized = 401, kForbidden = 403, kNotFound = 404, kTooManyRequests = 429, kBusy = 503;
constexpr int kPage = 50;  // the most that the specification allows
constexpr std::size_t kMostTokenBytes = 16384, kMostDetail = 200;
constexpr double kUsualLife_s = 3600, kLongestLife_s = 1e7, kRenewedEarlier_s = 60, kRenewedEarlierShare = 0.2;
constexpr int kProgramsShown = 8;

Error unavailable(std::string message) { return {ErrorCode::unavailable, std::move(message)}; }

/// The reason in a `problem` object or an OAuth2 error, with a space before it, or "".
std::string detail_of(const std::string& body) {
  const auto document = formats::parse_json(body, "answer");
  if (!document) return {};
  formats::JsonFields fields(document->root());
  for (const char* key : {"detail", "title", "error_description", "error"}) {
    const auto member = fields.optional(key);
    if (!member || !member->is_string()) continue;
    return ": " + std::string(member->string()->substr(0, kMostDetail));
  }
  return {};
}

bool is_ok(const http::HttpReply& reply) { return reply.status >= 200 && reply.status < 300; }

/// GET /auth/server is the one call without a token.
http::HttpCall get(std::string target) { return {"GET", std::move(target), "", ""}; }

}  // namespace

VtnClient::VtnClient(VtnOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), connection_([this] {
        options_.peer.token.clear();
        options_.peer.most_body_bytes = kMostPageBytes;
        return options_.peer;
      }()) {}

Result<ListedEvents> VtnClient::events() {
  const auto known = list<GridProgram>("/programs?" + filters(),
                                       [](const auto& body) { return parse_programs(body, "GET /programs"); });
  if (!known) return known.error();
  ListedEvents listed;
  program_id_.clear();
  for (const GridProgram& program : *known) {
    listed.program_units[program.id] = program.units;
    if (!options_.program.empty() && program.name == options_.program) program_id_ = program.id;
  }
  std::string target = "/events?" + filters();
  if (!options_.program.empty()) {
    if (program_id_.empty()) {
      std::vector<std::string> names;
      for (const GridProgram& program : *known) {
        if (std::ssize(names) < kProgramsShown) names.push_back(program.name);
      }
      return unavailable(fmt::format("program '{}' is not there; allowed: one of the {} that this client may read: {}",
                                     options_.program, known->size(), fmt::join(names, ", ")));
    }
    target += "programID=" + percent_encode(program_id_) + "&";
  }
  listed.list.pages = 0;
  auto events = list<GridEvent>(
      target, [](const auto& body) { return parse_events(body, "GET /events"); }, &listed.list.pages);
  if (!events) return events.error();
  std::erase_if(*events, [this](const GridEvent& event) { return !concerns_us(event); });
  listed.list.events = *std::move(events);
  return listed;
}

Result<std::optional<GridEvent>> VtnClient::event(const std::string& id) {
  const auto reply = call(get("/events/" + percent_encode(id)), kNotFound);
  if (!reply) return reply.error();
  if (reply->status == kNotFound || reply->status == kForbidden) return std::optional<GridEvent>();
  auto event = parse_event(reply->body, "GET /events/" + id);
  if (!event) return event.error();
  if (event->id.empty() && event->unread) return Error{ErrorCode::invalid_input, event->unread->why};
  if (event->id != id || !concerns_us(*event)) return std::optional<GridEvent>();
  return std::optional(*std::move(event));
}

Result<http::HttpReply> VtnClient::call(const http::HttpCall& call, int also) {
  const std::string what = call.method + " " + call.target.substr(0, call.target.find('?'));
  asked_wait_s_ = 0;
  for (const bool again : {false, true}) {
    const auto bearer = token();
    if (!bearer) return bearer.error();
    http::HttpCall with_token = call;
    with_token.authorization = "Bearer " + *bearer;
    if (call.method == "POST") connection_.close();
    auto reply = connection_.call(with_token);
    if (!reply) return unavailable(fmt::format("{}: {}", what, reply.error().message));
    if (reply->status == kUnauthorized) {
      token_.clear();
      if (!again) continue;
    }
    const bool is_allowed = also != 0 && (reply->status == also || (also == kNotFound && reply->status == kForbidden));
    if (!is_ok(*reply) && !is_allowed) return wrong_status(what, *reply);
    return reply;
  }
  return unavailable(what + ": not authorized");  // not reached
}

Error VtnClient::wrong_status(const std::string& what, const http::HttpReply& reply) {
  if (reply.status == kTooManyRequests || reply.status == kBusy) asked_wait_s_ = parse_retry_after(reply.retry_after);
  return unavailable(
      fmt::format("{}: {} {}{}", what, reply.status, http::reason_phrase(reply.status), detail_of(reply.body)));
}

Result<std::string> VtnClient::token() {
  if (!token_.empty() && clock_.now_s() < renew_at_s_) return token_;
  token_.clear();
  const auto url = token_url();
  if (!url) return url.error();
  http::HttpPeer peer = options_.peer;
  const std::size_t path = url->find('/', url->find("://") + 3);
  peer.url = url->substr(0, path);
  http::HttpCall form{"POST", path == std::string::npos ? "/" : url->substr(path), "",
                      "application/x-www-form-urlencoded"};
  form.body = fmt::format("grant_type=client_credentials&client_id={}&client_secret={}",
                          percent_encode(options_.client_id), percent_encode(options_.client_secret));
  if (!options_.scope.empty()) form.body += "&scope=" + percent_encode(options_.scope);
  const double asked_s = clock_.now_s();
  const auto reply = http::http_call(peer, form);
  if (!reply) return unavailable("token: " + reply.error().message);
  if (!is_ok(*reply)) return wrong_status("token: POST " + http::without_user(*url), *reply);
  const auto got = parse_access_token(reply->body);
  if (!got) return unavailable("token: " + got.error().message);
  token_ = got->token;
  const double earlier_s = std::min(kRenewedEarlier_s, got->expires_in_s * kRenewedEarlierShare);
  renew_at_s_ = asked_s + got->expires_in_s - earlier_s;
  return token_;
}

Result<std::string> VtnClient::token_url() {
  std::string url = options_.token_url;
  if (url.empty()) {
    const auto reply = connection_.call(get("/auth/server"));
    if (!reply) return unavailable("GET /auth/server: " + reply.error().message);
    if (reply->status == kNotFound) {
      return unavailable(
          "GET /auth/server: 404 Not Found, as from a server of OpenADR 3.0; allowed: OpenADR 3.1, or its "
          "token endpoint with --token-url");
    }
    if (!is_ok(*reply)) return wrong_status("GET /auth/server", *reply);
    const auto named = parse_token_url(reply->body);
    if (!named) return unavailable(named.error().message);
    url = *named;
  }
  const auto parsed = http::parse_url(url);
  if (!parsed) return unavailable("token URL: " + parsed.error().message);
  const bool is_text = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
  if (!is_text || http::without_user(url) != url) {
    return unavailable(
        fmt::format("token URL {}; allowed: a URL of ASCII, without a user, spaces or '#'", http::without_user(url)));
  }
  if (!parsed->tls && !http::is_loopback_host(parsed->address.host)) {
    return unavailable(fmt::format("token URL {}: the client's secret would be readable on the network; allowed: https",
                                   http::without_user(url)));
  }
  return url;
}

Status VtnClient::visit_pages(const std::string& target,
                              const std::function<Result<bool>(const std::string& body)>& visit) {
  std::size_t bytes = 0;
  for (int page = 0; page < kMostPages; ++page) {
    const auto reply = call(get(fmt::format("{}skip={}&limit={}", target, page * kPage, kPage)));
    if (!reply) return reply.error();
    bytes += reply->body.size();
    if (bytes > kMostBytes) break;
    const auto any_new = visit(reply->body);
    if (!any_new) return unavailable(any_new.error().message);
    if (!*any_new) return Ok{};
  }
  return unavailable(fmt::format("GET {}: more than {} pages or {} MiB; allowed: fewer, for example with --program",
                                 target.substr(0, target.find('?')), kMostPages, kMostBytes >> 20U));
}

std::string VtnClient::filters() const {
  std::string query;
  for (const std::string& target : options_.targets) query += "targets=" + percent_encode(target) + "&";
  return query;
}

bool VtnClient::concerns_us(const GridEvent& event) const {
  const bool is_unknown = event.unread && event.program.empty();
  if (!program_id_.empty() && event.program != program_id_ && !is_unknown) return false;
  if (options_.targets.empty() || event.targets.empty()) return true;
  return std::ranges::any_of(event.targets, [&](const std::string& target) {
    return std::ranges::find(options_.targets, target) != options_.targets.end();
  });
}

double parse_retry_after(std::string_view text) {
  const auto seconds = formats::number_in<std::int64_t>(text);
  constexpr double most_s = kSecondsPerDay;
  return seconds && *seconds > 0 ? std::min(static_cast<double>(*seconds), most_s) : 0;
}

Result<std::string> parse_token_url(const std::string& body) {
  const auto document = formats::parse_json(body, "GET /auth/server");
  if (!document) return document.error();
  formats::JsonFields fields(document->root());
  const std::string url(fields.string("tokenURL"));
  if (fields.error()) return *fields.error();
  return url;
}

Result<AccessToken> parse_access_token(const std::string& body) {
  const auto wrong = [](const std::string& what) {
    return Error{ErrorCode::invalid_input, what};  // never with the text: it may hold a token
  };
  const auto document = formats::parse_json(body, "answer");
  if (!document) return wrong("the answer is not JSON");
  formats::JsonFields fields(document->root());
  AccessToken result{std::string(fields.string("access_token")), kUsualLife_s};
  const std::string type(fields.string("token_type"));
  if (fields.error()) return wrong("the answer has no access_token or no token_type");
  if (!http::same_without_case(type, "Bearer")) return wrong("token_type is not Bearer");
  const bool is_text = std::ranges::all_of(result.token, [](char c) { return c > ' ' && c < 0x7f; });
  if (result.token.empty() || result.token.size() > kMostTokenBytes || !is_text) {
    return wrong(fmt::format("access_token is empty, too long or has spaces; allowed: at most {} bytes of ASCII",
                             kMostTokenBytes));
  }
  if (const auto expires = fields.optional("expires_in"); expires && !expires->is_null()) {
    const auto number = expires->number();
    if (!number || *number < 0) return wrong("expires_in is not a number of seconds");
    result.expires_in_s = std::min(*number, kLongestLife_s);
  }
  return result;
}

Result<std::vector<StoredReport>> VtnClient::reports(const std::string& event, const std::string& client_name) {
  const std::string target =
      "/reports?eventID=" + percent_encode(event) + "&clientName=" + percent_encode(client_name) + "&";
  return list<StoredReport>(target, [](const auto& body) { return parse_reports(body, "GET /reports"); });
}

Status VtnClient::create(const std::string& report) {
  const auto reply = call({"POST", "/reports", report});
  if (!reply) return reply.error();
  return Ok{};
}

Status VtnClient::replace(const std::string& id, const std::string& report) {
  const auto reply = call({"PUT", "/reports/" + percent_encode(id), report});
  if (!reply) return reply.error();
  return Ok{};
}

}  // namespace perseus::openadr
