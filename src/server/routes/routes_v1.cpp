// The server's own API, /v1: docs/openapi.json.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "io/report/report_data.h"
#include "server/jobs/api_bodies.h"
#include "server/jobs/identity.h"
#include "server/jobs/json_fields.h"
#include "server/routes/api.h"
#include "server/routes/exchange.h"
#include "server/service/job_list.h"
#include "server/service/learned_profile.h"
#include "server/service/registration.h"

namespace perseus::routes {
namespace {

Error wrong_parameter(std::string_view name, std::string_view value, std::string_view expected) {
  return {ErrorCode::usage, fmt::format("'{}' is '{}'; expected {}", name, value, expected)};
}

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
  std::optional<Error> error() const {
    if (error_) return error_;
    for (const auto& [name, value] : request_.query) {
      if (!known_.contains(name)) return Error{ErrorCode::usage, fmt::format("there is no parameter '{}' here", name)};
    }
    return std::nullopt;
  }

 private:
  const http::HttpRequest& request_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

std::string format_schedule(const jobs::StageSchedule& schedule) {
  std::string text =
      fmt::format("\"version\":{},\"kind\":\"{}\",\"from_iteration\":{},\"stage\":{},\"reason\":{}", schedule.version,
                  schedule.kind == jobs::StageSchedule::Kind::plan               ? "plan"
                  : schedule.kind == jobs::StageSchedule::Kind::profiling_window ? "profiling_window"
                                                                                 : "maximum_clock",
                  schedule.from_iteration, schedule.stage_rank, http::json_quoted(schedule.reason));
  if (schedule.window >= 0) text += fmt::format(",\"window\":{}", schedule.window);
  if (schedule.iterations > 0) {
    text += fmt::format(",\"iterations\":{},\"then\":\"maximum_clock\"", schedule.iterations);
  }
  if (schedule.iteration_time) text += fmt::format(",\"iteration_time_s\":{}", schedule.iteration_time->value());
  if (schedule.all_max_time) text += fmt::format(",\"maximum_clock_time_s\":{}", schedule.all_max_time->value());
  if (schedule.slower_on_purpose) text += fmt::format(",\"slower_because\":{}", http::json_quoted(schedule.reason));
  text += ",\"clocks\":[";
  for (std::size_t i = 0; i < schedule.clocks.size(); ++i) {
    text += fmt::format("{}[\"{}\",{}]", i == 0 ? "" : ",", schedule.clocks[i].instruction,
                        schedule.clocks[i].clock.value());
  }
  text += ']';
  if (!schedule.computations.empty()) {
    text += ",\"computations\":[";
    for (std::size_t i = 0; i < schedule.computations.size(); ++i) {
      text += fmt::format("{}[{},{}]", i == 0 ? "" : ",", schedule.computations[i].microbatch,
                          schedule.computations[i].chunk);
    }
    text += ']';
  }
  return text + '}';
}

std::string plan_json(const jobs::PlanAnswer& answer) {
  if (!answer.schedule) return fmt::format("{{\"rank\":{},\"unchanged\":true}}", answer.rank);
  auto& text = answer.schedule->rendered["v1"];
  if (!text) text = std::make_shared<const std::string>(format_schedule(*answer.schedule));
  return fmt::format("{{\"rank\":{},\"pipeline\":{},{}", answer.rank, answer.pipeline, *text);
}

std::string registered_json(const jobs::RegisteredRank& rank) {
  return fmt::format("{{\"registered\":{},\"expected\":{},\"epoch\":{}{}}}", rank.registered, rank.expected, rank.epoch,
                     rank.plan ? ",\"plan\":" + plan_json(*rank.plan) : "");
}

std::string reported_json(const jobs::ReportedIterations& reported) {
  std::string text = "{\"rejected\":[";
  for (const std::string& why : reported.rejected) text += (text.back() == '[' ? "" : ",") + http::json_quoted(why);
  return text + "]}";
}

bool contains_without_case(std::string_view text, std::string_view wanted) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto same = [&](char a, char b) { return lower(a) == lower(b); };
  return wanted.empty() || std::search(text.begin(), text.end(), wanted.begin(), wanted.end(), same) != text.end();
}

constexpr std::size_t kPageRows = 100, kMostPageRows = 1000;
constexpr std::string_view kPageLimits = "a number of jobs from 1 to 1000";
/// Largest age of savings estimated from time.
constexpr double kRowAge = 60;

std::string page_json(service::Service& service, const service::JobList::Query& query, double now_s) {
  std::vector<std::string> old;
  for (const auto& [place, row] : service.job_list().page(query).rows) {
    if (row->made_s + kRowAge <= now_s) old.push_back(place->job);
  }
  for (const std::string& job : old) service.refresh_row(job);
  const service::JobList::Page page = service.job_list().page(query);
  std::string text = fmt::format("{{\"server\":{{\"now_s\":{}}},\"jobs\":[", now_s);
  for (const auto& [place, row] : page.rows) {
    if (text.back() != '[') text += ',';
    text += row->text;
  }
  text += ']';
  if (page.next) text += ",\"next\":" + http::json_quoted(service::format_cursor(*page.next));
  return text + '}';
}

std::string straggler_json(const jobs::StragglerSet& set) {
  std::string text = "{\"notices\":[";
  for (std::size_t i = 0; i < set.notices.size(); ++i) {
    const auto& notice = set.notices[i];
    text += fmt::format("{}{{\"job\":{},\"id\":{},\"pipeline\":{},\"at_s\":{}", i == 0 ? "" : ",",
                        http::json_quoted(notice.job), http::json_quoted(notice.id), notice.pipeline, notice.at_s);
    if (!notice.nothing_done.empty()) text += ",\"nothing_done\":" + http::json_quoted(notice.nothing_done);
    text += '}';
  }
  return text + "]}";
}

/// Empty: the request has none. The quotes of the draft standard are optional.
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

constexpr double kLongestExchange_s = 60;
constexpr std::size_t kMostInAnExchange = 1024;

template <class T>
std::optional<T> body_of(const Call& call) {
  auto body = jobs::parse_json_as<T>(call.request.body, "body");
  if (body) return std::move(*body);
  call.fail({ErrorCode::invalid_input, body.error().message});
  return std::nullopt;
}

}  // namespace

void Api::list_jobs(Call call) {
  Parameters parameters(call.request);
  const auto limit = parameters.take<std::size_t>("limit", kPageLimits).value_or(kPageRows);
  const auto after = parameters.text("after");
  const auto state = parameters.text("state");
  const auto search = parameters.text("search");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (limit < 1 || limit > kMostPageRows) {
    return call.fail(wrong_parameter("limit", std::to_string(limit), kPageLimits));
  }
  if (const auto states = service::listed_states(); state && std::ranges::find(states, *state) == states.end()) {
    return call.fail(wrong_parameter("state", *state, fmt::format("one of {}", fmt::join(states, ", "))));
  }
  service::JobList::Query query{limit, std::nullopt, {}};
  if (after && !(query.after = service::parse_cursor(*after))) {
    return call.fail(wrong_parameter("after", *after, "'next' of the page before"));
  }
  const bool is_job = call.identity.role == service::Role::job;
  if (is_job || state || search) {
    query.wanted = [&](const service::JobList::Place& place, const service::JobList::Row& row) {
      return (!state || row.state == *state) &&
             (!search || contains_without_case(row.name, *search) || contains_without_case(place.job, *search)) &&
             (!is_job || reaches(call.identity, place.job) == true);
    };
  }
  const double now_s = clock_.now_s();
  const std::uint64_t revision = service_.job_list().revision();
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", limit, after.value_or(""), state.value_or(""), search.value_or(""));
  call.send(pages_.answer(call.request, {key, is_job ? call.identity.token + call.identity.job : "", revision, now_s},
                          [&] { return page_json(service_, query, now_s); }));
}

void Api::job_changes(Call call) {
  if (refuse_if_full(call, service::HeldCalls::Kind::stream)) return;
  if (changes_.empty()) service_.keep_job_changes(true);
  service::JobChanges::Sees sees;
  if (call.identity.role == service::Role::job) {
    sees = [identity = call.identity](const service::JobList::Change& change) {
      if (!identity.job.empty()) return identity.job == change.job;
      return change.owner && !change.owner->empty() && *change.owner == identity.token;
    };
  }
  call.responder.open_stream();
  const service::JobChanges::Id id = changes_.add(call.responder, std::move(sees));
  keep_open(call, [this, id] {
    changes_.remove(id);
    if (changes_.empty()) service_.keep_job_changes(false);
  });
}

void Api::register_job(Call call) {
  auto body = body_of<jobs::JobBody>(call);
  if (!body) return;
  for (const auto& [pipeline, profile] : body->profile_of) {
    const auto number = number_from<int>("profile_of", pipeline, "the number of a pipeline");
    if (!number) return call.fail(number.error());
    body->job.profile_of.emplace(*number, profile);
  }
  const auto key = idempotency_key_of(call.request);
  if (!key) return call.fail(key.error());
  body->job.idempotency_key = *key;
  body->job.fingerprint = key->empty() ? "" : jobs::content_key(call.request.body);
  const auto answer = then<jobs::RegisteredJob>(call, [](const jobs::RegisteredJob& made) {
    return fmt::format("{{\"job\":{},\"state\":\"{}\"}}", http::json_quoted(made.job), made.state);
  });
  jobs::RegisterJob repeated = body->job;
  if (!call.identity.token.empty()) repeated.facts[std::string(service::kOwnerFact)] = call.identity.token;
  auto job = owned(call, std::move(body->job));
  if (job) return service_.register_job(*std::move(job), answer);
  if (key->empty() || job.error().code != ErrorCode::too_large) return call.fail(job.error());
  // The token's last job already counts.
  service_.registered_before(repeated, [answer, refused = job.error()](const Result<jobs::RegisteredJob>& before) {
    answer(before || before.error().code != ErrorCode::not_found ? before : Result<jobs::RegisteredJob>(refused));
  });
}

void Api::show_job(Call call) {
  service_.job(call.parts[0], then<jobs::JobView>(call, [this](const jobs::JobView& view) {
                 return jobs::job_json(view, options_.factors);
               }));
}

void Api::register_rank(Call call) {
  Parameters parameters(call.request);
  const auto plan = parameters.text("plan");
  if (plan && *plan != "true" && *plan != "false") {
    return call.fail(wrong_parameter("plan", *plan, "true or false"));
  }
  if (const auto error = parameters.error()) return call.fail(*error);
  auto body = body_of<jobs::RegisterRank>(call);
  if (!body) return;
  body->job = call.parts[0];
  body->with_plan = plan == "true";
  service_.register_rank(std::move(*body), then<jobs::RegisteredRank>(call, registered_json));
}

void Api::next_plan(Call call) {
  Parameters parameters(call.request);
  jobs::WaitForPlan wait;
  wait.job = call.parts[0];
  const auto rank = number_from<int>("rank", call.parts[1], "a rank's number");
  if (!rank) return call.fail(rank.error());
  wait.rank = *rank;
  wait.have_version = parameters.take<std::int64_t>("have", "the version of a plan").value_or(0);
  wait.iteration = parameters.take<std::int64_t>("iteration", "an iteration's number");
  wait.epoch =
      parameters
          .take<std::int64_t>("epoch", fmt::format("the epoch of the rank's process, 0 to {}", service::kMostEpoch))
          .value_or(0);
  wait.max_wait_s = parameters.take<double>("wait_s", "a number of seconds");
  if (const auto error = parameters.error()) return call.fail(*error);
  // Spreads the repeated requests of a cluster's ranks over time.
  const double bound_s = options_.longest_wait_s * (0.5 + 0.5 * options_.chance());
  wait.max_wait_s = std::min(wait.max_wait_s.value_or(bound_s), bound_s);
  wait_for_plan(call, std::move(wait), plan_json);
}

void Api::drop_plan(Call call) {
  auto body = body_of<jobs::DropPlan>(call);
  if (!body) return;
  const auto rank = number_from<int>("rank", call.parts[1], "a rank's number");
  if (!rank) return call.fail(rank.error());
  body->job = call.parts[0];
  body->rank = *rank;
  service_.drop_plan(std::move(*body), then_ok(call));
}

void Api::report_iterations(Call call) {
  auto body = body_of<jobs::ReportIterations>(call);
  if (!body) return;
  body->job = call.parts[0];
  service_.report_iterations(std::move(*body), then<jobs::ReportedIterations>(call, reported_json));
}

void Api::exchange(Call call) {
  auto body = body_of<jobs::ExchangeBody>(call);
  if (!body) return;
  if (!(body->wait_s >= 0 && body->wait_s <= kLongestExchange_s)) {
    return call.fail(
        wrong_parameter("wait_s", fmt::format("{}", body->wait_s), fmt::format("0 to {} seconds", kLongestExchange_s)));
  }
  const std::size_t count = body->ranks.size() + body->reports.size() + body->waits.size();
  if (count > kMostInAnExchange) {
    return call.fail(
        {ErrorCode::too_large, fmt::format("{} ranks, reports and waits; allowed: {}", count, kMostInAnExchange)});
  }
  std::set<std::string> jobs;
  for (const jobs::BodyFor& rank : body->ranks) jobs.insert(rank.job);
  for (const jobs::BodyFor& report : body->reports) jobs.insert(report.job);
  for (const jobs::WaitForPlan& wait : body->waits) jobs.insert(wait.job);
  read_jobs(call.identity, jobs, [this, call, asked = *std::move(body)](const Unread& unread) mutable {
    exchange(call, std::move(asked), unread);
  });
}

void Api::exchange(const Call& call, jobs::ExchangeBody body, const Unread& unread) {
  Exchange::Parts parts;
  parts.wait_s = body.wait_s;
  const auto read_part = [&]<class Part>(const jobs::BodyFor& part, std::type_identity<Part>) {
    auto read = jobs::parse_json_as<Part>(part.body, "body");
    if (read) read->job = part.job;
    if (const Status may = reached(call.identity, part.job, unread); !may) read = may.error();
    return read;
  };
  for (const jobs::BodyFor& rank : body.ranks) {
    parts.ranks.push_back(read_part(rank, std::type_identity<jobs::RegisterRank>{}));
    if (parts.ranks.back()) parts.ranks.back()->with_plan = true;
  }
  for (const jobs::BodyFor& report : body.reports) {
    parts.reports.push_back(read_part(report, std::type_identity<jobs::ReportIterations>{}));
  }
  for (jobs::WaitForPlan& wait : body.waits) {
    const Status may = reached(call.identity, wait.job, unread);
    parts.waits.push_back(may ? Result<jobs::WaitForPlan>(std::move(wait)) : may.error());
  }
  const std::size_t waits = std::max<std::size_t>(parts.waits.size(), 1);
  if (refuse_if_full(call, service::HeldCalls::Kind::wait, waits)) return;
  const auto held = std::make_shared<service::HeldCalls::Id>(0);
  const auto exchange = std::make_shared<Exchange>(
      service_, options_.later, Exchange::Formats{plan_json, registered_json, reported_json, response_of},
      [this, held, responder = call.responder](std::string text) {
        held_.remove(*held);
        responder.send(http::json_response(200, std::move(text)));
      });
  *held = held_.add({call.identity, call.request.peer, service::HeldCalls::Kind::wait, waits},
                    [responder = call.responder, exchange] {
                      exchange->cancel();
                      responder.send(response_of({ErrorCode::unauthorized, "this token was revoked or has expired"}));
                    });
  call.responder.on_closed([this, held, weak = std::weak_ptr(exchange)] {
    held_.remove(*held);
    if (const auto left = weak.lock()) left->cancel();
  });
  exchange->start(std::move(parts));
}

void Api::finish_job(Call call) { service_.finish_job(call.parts[0], then_ok(call)); }

void Api::delete_job(Call call) { service_.remove_job(call.parts[0], then_ok(call)); }

void Api::upload_profile(Call call) {
  if (Status room = has_room(call.identity); !room) return call.fail(room.error());
  auto body = body_of<jobs::ProfileBody>(call);
  if (!body) return;
  service_.upload_profile(call.parts[0], std::move(body->profile), body->pipelines, then_ok(call));
}

using Frontier = std::shared_ptr<const jobs::CharacterizedPipeline>;

void Api::frontier(Call call) {
  Parameters parameters(call.request);
  const int pipeline = parameters.take<int>("pipeline", "a pipeline's number").value_or(0);
  if (const auto error = parameters.error()) return call.fail(*error);
  service_.frontier(call.parts[0], pipeline, then<Frontier>(call, [](const Frontier& found) {
                      std::string text;
                      report::write_frontier_data(found->dag, found->frontier,
                                                  [&](std::string_view piece) { text += piece; });
                      return text;
                    }));
}

namespace {

void answer_timeline(const Call& call, const jobs::CharacterizedPipeline& shown, int point) {
  if (point >= static_cast<int>(shown.frontier.points.size())) {
    return call.fail(
        {ErrorCode::not_found, fmt::format("point {}: the frontier has {}", point, shown.frontier.points.size())});
  }
  std::string text;
  report::write_timeline_data(shown.dag, shown.frontier.points[point].plan,
                              [&](std::string_view piece) { text += piece; });
  call.answer(std::move(text));
}

}  // namespace

void Api::timeline(Call call) {
  Parameters parameters(call.request);
  const int pipeline = parameters.take<int>("pipeline", "a pipeline's number").value_or(0);
  const auto point = parameters.take<int>("point", "a point's number");
  if (const auto error = parameters.error()) return call.fail(*error);
  const std::string job = call.parts[0];
  if (point) {
    service_.frontier(job, pipeline, [call = std::move(call), point = *point](const Result<Frontier>& found) {
      found ? answer_timeline(call, **found, point) : call.fail(found.error());
    });
  } else {
    service_.timeline(job, pipeline, [call = std::move(call)](const Result<jobs::TimelineView>& found) {
      found ? answer_timeline(call, *found->pipeline, found->point) : call.fail(found.error());
    });
  }
}

void Api::job_events(Call call) {
  Parameters parameters(call.request);
  auto after = parameters.take<std::int64_t>("after", "the id of an event");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (const auto last = call.request.header("Last-Event-ID"); last && !last->empty()) {
    const auto id = number_from<std::int64_t>("Last-Event-ID", *last, "the id of an event");
    if (!id) return call.fail(id.error());
    after = *id;
  }
  if (refuse_if_full(call, service::HeldCalls::Kind::stream)) return;
  const auto end = std::make_shared<std::function<void()>>();
  const std::string job = call.parts[0];
  service_.subscribe(
      job, after.value_or(-1),
      [this, responder = call.responder, end](const jobs::JobEvent& event) {
        // After a part of a long log, readers subscribe again from its last id, as event sources do by themselves.
        const bool part_over = event.kind == jobs::kPartOver;
        if (!part_over) responder.event(text_of(event));
        if ((part_over || event.kind == jobs::kJobRemoved) && *end) (*end)();
      },
      [this, call, end](const Result<jobs::SubscriptionId>& subscription) {
        if (!subscription) return call.fail(subscription.error());
        call.responder.open_stream();
        const service::HeldCalls::Id held = keep_open(call, [this, id = *subscription] { service_.unsubscribe(id); });
        *end = [this, responder = call.responder, held, id = *subscription] {
          held_.remove(held);
          service_.unsubscribe(id);
          responder.end_stream();
        };
      });
}

void Api::all_events(Call call) {
  if (refuse_if_full(call, service::HeldCalls::Kind::stream)) return;
  call.responder.open_stream();
  if (call.identity.role == service::Role::job) {  // it sees only some jobs
    const jobs::SubscriptionId subscription = service_.subscribe_all(
        [this, responder = call.responder, identity = call.identity](const jobs::JobEvent& event) {
          if (reaches(identity, event.job) == true) responder.event(text_of(event));
        });
    keep_open(call, [this, subscription] { service_.unsubscribe(subscription); });
    return;
  }
  if (events_.empty()) {
    all_events_ = service_.subscribe_all([this](const jobs::JobEvent& event) {
      if (events_.take(*text_of(event), clock_.now_s()) && earlier_wake_) earlier_wake_();
    });
  }
  const service::EventStreams::Id id = events_.add(call.responder);
  keep_open(call, [this, id] {
    if (events_.empty()) return;
    events_.remove(id);
    if (events_.empty()) service_.unsubscribe(all_events_);
  });
}

std::shared_ptr<const std::string> Api::text_of(const jobs::JobEvent& event) {
  if (!told_.text || told_.job != event.job || told_.sequence != event.sequence) {
    told_ = {event.job, event.sequence,
             http::event_text(std::to_string(event.sequence), event.kind, jobs::event_json(event))};
  }
  return told_.text;
}

void Api::set_straggler(Call call) {
  auto body = body_of<jobs::SetStraggler>(call);
  if (!body) return;
  service_.set_straggler(std::move(*body), then<jobs::StragglerSet>(call, straggler_json));
}

void Api::set_job_straggler(Call call) {
  auto body = body_of<jobs::SetStraggler>(call);
  if (!body) return;
  body->job = call.parts[0];
  service_.set_straggler(std::move(*body), then<jobs::StragglerSet>(call, straggler_json));
}

void Api::withdraw_straggler(Call call) { service_.withdraw_straggler({call.parts[0], call.parts[1]}, then_ok(call)); }

void Api::set_policy(Call call) {
  // The form of the log: an object with one member, the kind. The check ensures that the body is one JSON value,
  // which can be embedded in another.
  if (const auto alone = formats::parse_json(call.request.body, "body"); !alone) return call.fail(alone.error());
  call.request.body = fmt::format("{{{}:{}}}", http::json_quoted(call.parts[1]), call.request.body);
  const auto body = body_of<jobs::PolicyMembers>(call);
  if (!body) return;
  const auto policy = jobs::policy_of(*body);
  if (!policy) return call.fail(wrong_parameter("kind", call.parts[1], "power_cap, pinned or max_slowdown"));
  service_.set_policy({call.parts[0], *policy}, then_ok(call));
}

void Api::clear_policy(Call call) { service_.clear_policy({call.parts[0], call.parts[1]}, then_ok(call)); }

void Api::list_profiles(Call call) {
  service_.profiles(then<std::vector<std::string>>(call, [](const std::vector<std::string>& names) {
    std::string text = "{\"profiles\":[";
    for (const std::string& name : names) text += (text.back() == '[' ? "" : ",") + http::json_quoted(name);
    return text + "]}";
  }));
}

void Api::show_profile(Call call) {
  service_.profile(call.parts[0], then<jobs::NamedProfile>(call, [](const jobs::NamedProfile& profile) {
                     return jobs::json_text(profile);
                   }));
}

void Api::put_profile(Call call) {
  auto body = body_of<jobs::NamedProfile>(call);
  if (!body) return;
  body->name = call.parts[0];
  service_.put_profile(std::move(*body), then<jobs::StoredProfile>(call, [](const jobs::StoredProfile& stored) {
                         return fmt::format("{{\"name\":{},\"stages\":{},\"ranks\":{}}}",
                                            http::json_quoted(stored.name), stored.stages, stored.ranks);
                       }));
}

void Api::remove_profile(Call call) { service_.remove_profile(call.parts[0], then_ok(call)); }

namespace {

/// Tokens of the role job see what their team has learned; other roles see everything.
bool is_for(const service::Identity& identity, const jobs::LearnedProfile& learned) {
  return identity.role != service::Role::job || learned.team == identity.team;
}

}  // namespace

void Api::list_learned(Call call) {
  const auto format = [identity = call.identity](const std::vector<jobs::LearnedProfile>& all) {
    std::string text = "{\"profiles\":[";
    for (const jobs::LearnedProfile& one : all) {
      if (!is_for(identity, one)) continue;
      text += fmt::format("{}{{\"id\":{},\"team\":{},\"model\":{},\"job\":{},\"learned_at_s\":{},\"confirmed\":{}",
                          text.back() == '[' ? "" : ",", http::json_quoted(one.id), http::json_quoted(one.team),
                          http::json_quoted(one.model), http::json_quoted(one.job), one.learned_at_s, one.confirmed);
      if (!one.doubted_by.empty()) {
        text += fmt::format(",\"doubted_by\":{},\"doubted_because\":{}", http::json_quoted(one.doubted_by),
                            http::json_quoted(one.doubted_because));
      }
      text += '}';
    }
    return text + "]}";
  };
  service_.learned_profiles(then<std::vector<jobs::LearnedProfile>>(call, format));
}

void Api::forget_learned(Call call) {
  service_.learned_profiles([this, call = std::move(call)](const Result<std::vector<jobs::LearnedProfile>>& all) {
    if (!all) return call.fail(all.error());
    const std::string& id = call.parts[0];
    const bool known = std::ranges::any_of(
        *all, [&](const jobs::LearnedProfile& one) { return one.id == id && is_for(call.identity, one); });
    if (known) return service_.forget_learned(id, then_ok(call));
    call.fail({ErrorCode::not_found, fmt::format("no profile was learned under the id '{}'", id)});
  });
}

void Api::list_tokens(Call call) {
  std::string text = "{\"tokens\":[";
  for (const store::TokenRow& token : tokens_.list()) {
    text += fmt::format("{}{{\"id\":\"{}\",\"role\":\"{}\",\"job\":{},\"name\":{},\"team\":{},\"created_at_s\":{}",
                        text.back() == '[' ? "" : ",", token.hash, token.role, http::json_quoted(token.job),
                        http::json_quoted(token.name), http::json_quoted(token.team), token.created_s);
    if (token.expires_s > 0) text += fmt::format(",\"expires_at_s\":{}", token.expires_s);
    text += '}';
  }
  call.answer(text + "]}");
}

void Api::make_token(Call call) {
  const auto body = body_of<jobs::TokenBody>(call);
  if (!body) return;
  for (const auto& [what, text] : {std::pair{"name", body->name}, {"team", body->team}, {"job", body->job}}) {
    if (const Status checked = service::check_text(what, text, 256); !checked) return call.fail(checked.error());
  }
  store::TokenRow wanted;
  wanted.role = body->role;
  wanted.job = body->job;
  wanted.name = body->name;
  wanted.team = body->team;
  if (const Status possible = service::check_token(wanted); !possible) return call.fail(possible.error());
  if (!tokens_.required()) {
    if (wanted.role != name_of(service::Role::infrastructure)) {
      return call.fail({ErrorCode::conflict,
                        "the first token must have the role infrastructure: without it, no "
                        "other could be made"});
    }
    if (!tokens_.shows_first_secret(call.request.header("Authorization").value_or(""))) {
      return call.fail(
          {ErrorCode::forbidden,
           "the first token is made with the secret in this server's log, or before it starts, by 'perseus "
           "token create --role infrastructure --data DIR'"});
    }
  }
  const double now_s = clock_.now_s();
  const double expires_s = body->expires_in_s ? now_s + *body->expires_in_s : 0;
  if (body->expires_in_s && !(*body->expires_in_s > 0 && *body->expires_in_s <= 1e10)) {
    return call.fail(
        {ErrorCode::usage, fmt::format("expires_in_s: {}; allowed: more than 0, at most 1e10", *body->expires_in_s)});
  }
  wanted.expires_s = expires_s;
  const service::NewToken token = service::make_token(std::move(wanted), now_s);
  tokens_.put(token.row, [call, token](const Status& put) {
    if (!put) return call.fail(put.error());
    http::HttpResponse made = http::json_response(
        200, fmt::format("{{\"token\":\"{}\",\"id\":\"{}\"}}", token.secret, token.row.hash.substr(0, 12)));
    made.headers.emplace_back("Cache-Control", "no-store");
    call.send(std::move(made));
  });
}

void Api::revoke_token(Call call) {
  tokens_.revoke(call.parts[0], [call](const Status& revoked) {
    if (!revoked) return call.fail(revoked.error());
    call.answer("{}");
  });
}

}  // namespace perseus::routes
