#include "server/routes/api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error_table.h"
#include "base/json_writer.h"
#include "server/jobs/api_bodies.h"
#include "server/jobs/identity.h"
#include "server/live/learned_profile.h"
#include "server/routes/call_input.h"
#include "server/routes/exchange.h"

namespace perseus::routes {
namespace {

bool is_placeholder(std::string_view segment) { return segment.starts_with('{'); }

struct Pattern {
  const Api::Route* route;
  std::string name;  ///< "GET /v1/jobs"
  std::vector<std::string> segments;
};

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> made = [] {
    std::vector<Pattern> all;
    for (const Api::Route& route : Api::routes()) {
      all.push_back({&route, fmt::format("{} {}", route.method, route.path), http::path_segments(route.path)});
    }
    return all;
  }();
  return made;
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  return std::equal(
      pattern.begin(), pattern.end(), path.begin(), path.end(),
      [](std::string_view wanted, std::string_view is) { return is_placeholder(wanted) ? !is.empty() : wanted == is; });
}

struct Found {
  const Pattern* pattern = nullptr;  ///< null: no route matches, or only for other methods
  std::string allowed;               ///< the methods allowed
};

Found route_of(const http::HttpRequest& request) {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::vector<std::string_view> allowed;
  for (const Pattern& pattern : patterns()) {
    if (!matches(pattern.segments, request.segments)) continue;
    if (pattern.route->method == method) return {&pattern, ""};
    allowed.emplace_back(pattern.route->method);
  }
  return {nullptr, fmt::format("{}", fmt::join(allowed, ", "))};
}

http::HttpResponse nowhere(const http::HttpRequest& request, const std::string& allowed) {
  if (allowed.empty()) {
    return response_of({ErrorCode::not_found, fmt::format("no such path: '{}'; see /v1/openapi.json", request.path)});
  }
  http::HttpResponse response =
      http::error_response(405, fmt::format("method {} is not supported here; allowed: {}", request.method, allowed));
  response.headers.emplace_back("Allow", allowed);
  return response;
}

}  // namespace

http::HttpResponse response_of(const Error& error) {
  http::HttpResponse response = http::error_response(entry_of(error.code).http_status, error.message);
  if (error.code == ErrorCode::unauthorized) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.code == ErrorCode::unavailable) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Error out_of_reach(std::string_view job) {
  return {ErrorCode::forbidden, fmt::format("this token has no permission for the job '{}'", job)};
}

void Reply::fail(const Error& error) const { send(response_of(error)); }

void Reply::send(http::HttpResponse response) const {
  if (audit) audit->answered(response.status);
  responder.send(std::move(response));
}

Api::Api(service::Service& service, access::Tokens& tokens, const Clock& clock, ApiOptions options)
    : service_(service),
      tokens_(tokens),
      clock_(clock),
      options_(std::move(options)),
      hosts_{false, options_.hosts},
      dashboard_(options_.dashboard),
      openapi_(options_.openapi),
      held_(options_.held),
      pages_(jobs::random_hex_id().substr(0, 8)),
      site_changes_(jobs::random_hex_id().substr(0, 8)),
      large_bodies_(options_.host) {
  tokens_.on_change([this] { end_expired(); });
  if (!options_.later) options_.later = [](const std::function<void()>& work) { work(); };
  service_.list_changes = &changes_;
}

void Api::set_limits(const ApiLimits& limits) {
  static_cast<ApiLimits&>(options_) = limits;
  hosts_.names = limits.hosts;
  held_.set_limits(limits.held);
}

Api::~Api() {
  tokens_.on_change({});
  service_.list_changes = nullptr;
}

bool Api::is_reader(const http::HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return false;
  const Found found = route_of(request);
  if (found.pattern == nullptr) return false;
  const Access access = found.pattern->route->access;
  return access == Access::read || access == Access::all_jobs;
}

std::optional<double> Api::next_wake() const {
  std::optional<double> first_s;
  const auto line_s = options_.host != nullptr ? wrong_tokens_.next_line_s() : std::nullopt;
  for (const auto& next_s : {changes_.next_wake_s(), events_.next_wake_s(), line_s}) {
    if (next_s && (!first_s || *next_s < *first_s)) first_s = next_s;
  }
  return first_s;
}

void Api::log_wrong_tokens() {
  if (options_.host == nullptr) return;
  if (const auto line = wrong_tokens_.log_line(clock_.now_s())) options_.host->warn(*line);
}

void Api::tick() {
  const double now_s = clock_.now_s();
  if (const auto due_s = events_.next_wake_s(); due_s && *due_s <= now_s) events_.send();
  if (const auto due_s = changes_.next_wake_s(); due_s && *due_s <= now_s) {
    changes_.send(service_.list.take_changes(), now_s);
  }
  if (const auto due_s = wrong_tokens_.next_line_s(); due_s && *due_s <= now_s) log_wrong_tokens();
  constexpr double expiry_spacing_s = 1;
  if (now_s < next_expiry_s_) return;
  next_expiry_s_ = now_s + expiry_spacing_s;
  end_expired();
}

void Api::end_expired() {
  held_.end_unless([this](const access::Identity& identity) { return tokens_.holds(identity, clock_.now_s()); });
}

template <auto handler>
void Api::with_body(Call call) {
  take_body(std::move(call), handler);
}

const std::vector<Api::Route>& Api::routes() {
  using enum Access;
  using enum Query;
  using enum Body;
  static const std::vector<Route> all{
      {"GET", "/v1/jobs", read, &Api::list_jobs, some},
      {"POST", "/v1/jobs", job, &Api::with_body<&Api::register_job>, none, large},
      {"GET", "/v1/jobs/{job}", read, &Api::show_job},
      {"DELETE", "/v1/jobs/{job}", job, &Api::delete_job},
      {"GET", "/v1/jobs/{job}/ranks", read, &Api::list_ranks, some},
      {"GET", "/v1/jobs/{job}/history", read, &Api::history, some},
      {"GET", "/v1/history", all_jobs, &Api::cluster_history, some},
      {"POST", "/v1/jobs/{job}/ranks", rank, &Api::register_rank, some, large},
      {"GET", "/v1/jobs/{job}/ranks/{rank}/plan", rank, &Api::next_plan, some},
      {"POST", "/v1/jobs/{job}/ranks/{rank}/plan_dropped", rank, &Api::with_body<&Api::drop_plan>},
      {"POST", "/v1/jobs/{job}/ranks/{rank}/shape", rank, &Api::with_body<&Api::see_shape>, none, large},
      {"POST", "/v1/jobs/{job}/ranks/{rank}/ended", rank, &Api::with_body<&Api::rank_ended>, some},
      {"POST", "/v1/jobs/{job}/iterations", rank, &Api::with_body<&Api::report_iterations>, none, large},
      {"POST", "/v1/exchange", rank, &Api::with_body<&Api::exchange>, none, large},
      {"POST", "/v1/jobs/{job}/finish", job, &Api::with_body<&Api::finish_job>},
      {"PUT", "/v1/jobs/{job}/profile", job, &Api::with_body<&Api::upload_profile>, none, large},
      {"GET", "/v1/jobs/{job}/frontier", read, &Api::frontier, some},
      {"GET", "/v1/jobs/{job}/timeline", read, &Api::timeline, some},
      {"GET", "/v1/jobs/{job}/events", read, &Api::job_events, some},
      {"GET", "/v1/events", read, &Api::all_events},
      {"GET", "/v1/events/recent", read, &Api::recent_events, some},
      {"GET", "/v1/job_changes", read, &Api::job_changes},
      {"GET", "/v1/alerts", read, &Api::list_alerts, some},
      {"GET", "/v1/hosts", read, &Api::list_hosts, some},
      {"GET", "/v1/stragglers", read, &Api::list_stragglers, some},
      {"GET", "/v1/policies", read, &Api::list_policies, some},
      {"POST", "/v1/stragglers", infrastructure, &Api::with_body<&Api::set_straggler>},
      {"POST", "/v1/jobs/{job}/stragglers", job, &Api::with_body<&Api::set_job_straggler>},
      {"DELETE", "/v1/jobs/{job}/stragglers/{notice}", job, &Api::withdraw_straggler},
      {"PUT", "/v1/jobs/{job}/policies/{kind}", infrastructure, &Api::with_body<&Api::set_policy>},
      {"DELETE", "/v1/jobs/{job}/policies/{kind}", infrastructure, &Api::clear_policy},
      {"PUT", "/v1/jobs/{job}/tier", infrastructure, &Api::with_body<&Api::set_tier>},
      {"GET", "/v1/site", all_jobs, &Api::show_site},
      {"PUT", "/v1/site", infrastructure, &Api::with_body<&Api::put_site>, none, large},
      {"DELETE", "/v1/site", infrastructure, &Api::clear_site},
      {"GET", "/v1/site/power", all_jobs, &Api::site_power, some},
      {"POST", "/v1/site/meter", infrastructure, &Api::with_body<&Api::site_meter>, none, large},
      {"POST", "/v1/site/admission", infrastructure, &Api::with_body<&Api::admit_job>, none, large},
      {"DELETE", "/v1/site/admission/{name}", infrastructure, &Api::release_admission},
      {"GET", "/v1/site/proof", all_jobs, &Api::site_proof, some},
      {"GET", "/v1/site/forecast", all_jobs, &Api::site_forecast, some},
      {"GET", "/v1/profiles", read, &Api::list_profiles},
      {"GET", "/v1/profiles/{name}", read, &Api::show_profile},
      {"PUT", "/v1/profiles/{name}", infrastructure, &Api::with_body<&Api::put_profile>, none, large},
      {"DELETE", "/v1/profiles/{name}", infrastructure, &Api::remove_profile},
      {"GET", "/v1/learned_profiles", read, &Api::list_learned},
      {"DELETE", "/v1/learned_profiles/{id}", job, &Api::forget_learned},
      {"GET", "/v1/tokens", infrastructure, &Api::list_tokens},
      {"POST", "/v1/tokens", infrastructure, &Api::with_body<&Api::make_token>},
      {"DELETE", "/v1/tokens/{token}", infrastructure, &Api::revoke_token},
      {"GET", "/v1/openapi.json", open, &Api::openapi},
      {"GET", "/info", rank, &Api::legacy_info},
      {"POST", "/register_job", job, &Api::with_body<&Api::legacy_register_job>},
      {"POST", "/register_rank", rank, &Api::with_body<&Api::artifact_register_rank>},
      {"POST", "/register_rank/{job}", rank, &Api::with_body<&Api::legacy_register_rank>},
      {"GET", "/schedule/{job}", rank, &Api::legacy_schedule},
      {"POST", "/result/{job}", rank, &Api::with_body<&Api::legacy_result>, none, large},
      {"GET", "/", open, &Api::dashboard},
      {"GET", "/healthz", open, &Api::healthz},
      {"GET", "/readyz", open, &Api::readyz},
      {"GET", "/metrics", all_jobs, &Api::metrics},
  };
  return all;
}

std::optional<bool> Api::reaches(const access::Identity& identity, const std::string& job) {
  if (identity.role != access::Role::job) return true;
  if (!identity.job.empty()) return identity.job == job;
  const auto owner = service_.list.owner_of(job);
  if (!owner) return std::nullopt;
  return !owner->empty() && *owner == identity.token;
}

void Api::read_jobs(const access::Identity& identity, const std::set<std::string>& jobs,
                    std::function<void(Unread)> then) {
  std::vector<std::string> unknown;
  std::ranges::copy_if(jobs, std::back_inserter(unknown), [&](const auto& job) { return !reaches(identity, job); });
  if (unknown.empty()) return then({});
  struct Reading {
    std::size_t left;
    Unread unread;
    std::function<void(Unread)> then;
  };
  const auto reading = std::make_shared<Reading>(Reading{unknown.size(), {}, std::move(then)});
  for (const std::string& job : unknown) {
    service_.job(job, [job, reading](const Result<jobs::JobView>& view) {
      if (!view && view.error().code == ErrorCode::unavailable) reading->unread.emplace(job, view.error());
      if (--reading->left == 0) reading->then(std::move(reading->unread));
    });
  }
}

Status Api::reached(const access::Identity& identity, const std::string& job, const Unread& unread) {
  if (const auto late = unread.find(job); late != unread.end()) return late->second;
  if (reaches(identity, job).value_or(false)) return Ok{};
  return out_of_reach(job);
}

void Api::if_it_reaches(Call call, const std::string& job, std::function<void(Call)> handler) {
  const auto decide = [job, handler = std::move(handler)](Call asked, bool reaches) {
    if (reaches) return handler(std::move(asked));
    asked.fail(out_of_reach(job));
  };
  if (const auto known = reaches(call.identity, job)) return decide(std::move(call), *known);
  service_.job(job, [this, job, call = std::move(call), decide](const Result<jobs::JobView>& view) {
    if (!view && view.error().code == ErrorCode::unavailable) return call.fail(view.error());
    decide(call, view && reaches(call.identity, job).value_or(false));
  });
}

Status Api::has_room(const access::Identity& identity) const {
  const std::int64_t stored = service_.stored_bytes->of(identity.token);
  if (identity.token.empty() || stored < options_.stored_bytes_per_token) return Ok{};
  return Error{
      ErrorCode::too_large,
      fmt::format("bytes that jobs of the token {} take in the database: {}; allowed: {}; remove jobs that have "
                  "ended (DELETE /v1/jobs/JOB)",
                  identity.token, stored, options_.stored_bytes_per_token)};
}

Result<jobs::RegisterJob> Api::owned(const Call& call, jobs::RegisterJob request) const {
  if (!call.identity.job.empty()) {
    return Error{ErrorCode::forbidden,
                 fmt::format("this token is for the job '{}', which is registered already", call.identity.job)};
  }
  if (!call.identity.token.empty()) {
    if (Status room = has_room(call.identity); !room) return room.error();
    const views::JobList::Owned owned = service_.owned_by(call.identity.token);
    const double ranks = static_cast<double>(request.degrees.dp) * request.degrees.pp * request.degrees.tp;
    if (owned.jobs + 1 > options_.jobs_per_token) {
      return Error{ErrorCode::too_large, fmt::format("live jobs of the token {}: {}; allowed: {}", call.identity.token,
                                                     owned.jobs + 1, options_.jobs_per_token)};
    }
    if (static_cast<double>(owned.ranks) + ranks > static_cast<double>(options_.ranks_per_token)) {
      return Error{ErrorCode::too_large,
                   fmt::format("ranks of the token {}: {}; allowed: {}", call.identity.token,
                               static_cast<double>(owned.ranks) + ranks, options_.ranks_per_token)};
    }
  }
  for (const std::string_view fact : {live::kOwnerFact, jobs::kTeamFact}) request.facts.erase(std::string(fact));
  if (!call.identity.token.empty()) request.facts.emplace(live::kOwnerFact, call.identity.token);
  if (!call.identity.team.empty()) request.facts.emplace(jobs::kTeamFact, call.identity.team);
  request.tier_bounded = call.identity.role == access::Role::job;
  request.by = author_of(call.identity);
  return request;
}

bool Api::is_audited(const Route& route) const {
  return options_.host != nullptr && route.method != "GET" && route.access != Access::rank;
}

void Audited::answered(int status) const {
  host.audit(json_object([&](JsonWriter& f) {
    f.always("token", who.token);
    f.always("name", who.name);
    f.always("from", from);
    f.always("did", did);
    f.always("status", status);
  }));
}

std::shared_ptr<const Audited> Api::audit_of(const http::HttpRequest& request, access::Identity who) const {
  // Percent signs keep characters that change how text is displayed out of the log.
  constexpr std::size_t longest = 300;
  std::string path = access::without_tokens(request.path);
  const bool plain = std::ranges::all_of(path, [](char c) { return c > ' ' && c < 0x7F; });
  if (!plain) path = http::percent_encode(path);
  if (path.size() > longest) path = path.substr(0, longest) + "...";
  return std::make_shared<const Audited>(
      Audited{*options_.host, fmt::format("{} {}", request.method, path), request.peer, std::move(who)});
}

std::optional<http::HttpResponse> Api::refused(const Route& route, const http::HttpRequest& request,
                                               access::Identity& who) {
  auto refusal = refusal_of(route, request, who);
  const bool no_token = refusal && (refusal->status == 401 || refusal->status == 429);  // has a line of its own
  if (refusal && !no_token && is_audited(route)) audit_of(request, who)->answered(refusal->status);
  return refusal;
}

std::optional<http::HttpResponse> Api::refusal_of(const Route& route, const http::HttpRequest& request,
                                                  access::Identity& who) {
  if (route.access == Access::open) return std::nullopt;
  if (request.while_draining) return response_of({ErrorCode::unavailable, "the server is stopping: try again"});
  hosts_.any = tokens_.required() && hosts_.names.empty();
  if (auto refusal = http::refused_across_sites(request, hosts_)) return refusal;
  const auto identity = tokens_.identify(request.header("Authorization").value_or(""), clock_.now_s());
  if (!identity) {
    http::HttpResponse response = response_of(identity.error());
    const bool has_token = request.header("Authorization").has_value();
    if (!has_token && !is_audited(route)) return response;  // such as the dashboard's, until somebody logs in
    if (!has_token) {
      wrong_tokens_.note(request.peer);
    } else if (wrong_tokens_.count(request.peer, clock_.now_s())) {
      response =
          http::error_response(429, fmt::format("{} wrong tokens from {} within {:.0f} s; {}", WrongTokens::kAllowed,
                                                request.peer, WrongTokens::kWithin_s, identity.error().message));
      response.headers.emplace_back("Retry-After", fmt::format("{:.0f}", WrongTokens::kWithin_s));
    }
    log_wrong_tokens();
    return response;
  }
  who = *identity;
  const access::Role role = who.role;
  const bool for_jobs = route.access == Access::job || route.access == Access::rank;
  if ((route.access == Access::infrastructure && role != access::Role::infrastructure) ||
      (for_jobs && role == access::Role::read_only) ||
      (route.access == Access::all_jobs && role == access::Role::job)) {
    return response_of({ErrorCode::forbidden,
                        fmt::format("a token of the role {} may not {} {}", name_of(role), route.method, route.path)});
  }
  return std::nullopt;
}

namespace {

/// With two values of one parameter, the intended one is unknown; a parameter that nobody reads is a typo, except in
/// the two existing protocols, which ignore it.
std::optional<Error> wrong_query(const Api::Route& route, const http::HttpRequest& request) {
  for (auto pair = request.query.begin(); pair != request.query.end(); ++pair) {
    const auto& name = pair->first;
    const auto same = [&](const auto& other) { return other.first == name; };
    if (std::any_of(request.query.begin(), pair, same)) {
      return Error{ErrorCode::usage, fmt::format("the parameter '{}' appears twice; allowed: once", name)};
    }
  }
  if (route.query == Api::Query::some || !route.path.starts_with("/v1/")) return std::nullopt;
  return Parameters(request).error();
}

std::optional<http::HttpResponse> refused_as_too_large(const Api::Route& route, std::size_t bytes) {
  if (route.body == Api::Body::large || bytes <= Api::kSmallBody) return std::nullopt;
  return response_of({ErrorCode::too_large, fmt::format("the body has {} bytes; allowed: {}", bytes, Api::kSmallBody)});
}

}  // namespace

std::optional<http::HttpResponse> Api::refuse(const http::HttpRequest& head) {
  const Found found = route_of(head);
  if (!found.pattern) return nowhere(head, found.allowed);
  access::Identity who;
  const Route& route = *found.pattern->route;
  if (auto refusal = refused(route, head, who)) return refusal;
  std::size_t length = 0;  // unknown: a chunked body is measured once it has arrived
  const std::string_view text = head.header("Content-Length").value_or("");
  std::from_chars(text.data(), text.data() + text.size(), length);
  auto too_large = refused_as_too_large(route, length);
  if (too_large && is_audited(route)) audit_of(head, who)->answered(too_large->status);
  return too_large;
}

void Api::handle(http::HttpRequest request, http::Responder responder) {
  const Found found = route_of(request);
  if (!found.pattern) return responder.send(nowhere(request, found.allowed));
  const Route& route = *found.pattern->route;
  responder.name(found.pattern->name);
  const metrics::Metrics::IoSpan span(*options_.metrics, found.pattern->name);
  Call call{{std::move(responder), {}}, {}, {}, {}};
  if (auto refusal = refused(route, request, call.identity)) return call.send(std::move(*refusal));
  if (is_audited(route)) { call.audit = audit_of(request, call.identity); }
  if (auto refusal = refused_as_too_large(route, request.body.size())) return call.send(std::move(*refusal));
  std::optional<std::string> job;
  for (std::size_t i = 0; i < request.segments.size(); ++i) {
    const std::string_view segment = found.pattern->segments[i];
    if (!is_placeholder(segment)) continue;
    call.parts.push_back(std::move(request.segments[i]));
    if (segment == "{job}") job = call.parts.back();
  }
  call.request = std::move(request);
  // Rights first: a job of others answers 403 whatever the parameters.
  const auto carry_out = [this, &route](Call allowed) {
    if (const auto wrong = wrong_query(route, allowed.request)) return allowed.fail(*wrong);
    (this->*route.handler)(std::move(allowed));
  };
  if (!job || reaches(call.identity, *job) == true) return carry_out(std::move(call));
  if_it_reaches(std::move(call), *job, carry_out);
}

work::Done<Ok> Api::then_ok(const Reply& reply) const {
  return then<Ok>(reply, [](const Ok&) { return std::string("{}"); });
}

}  // namespace perseus::routes
