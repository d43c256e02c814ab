// The server's own API, /v1: docs/openapi.json.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "report/report_data.h"
#include "server/api.h"
#include "server/api_bodies.h"
#include "server/json_fields.h"
#include "server/learned_profile.h"
#include "server/registration.h"

namespace perseus::server {
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

/// The query parameters that a call knows; others are an error, so that a slip of the pen is not ignored.
class Parameters {
 public:
  explicit Parameters(const HttpRequest& request) : request_(request) {}

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
  std::optional<Error> error() const {
    if (error_) return error_;
    for (const auto& [name, value] : request_.query) {
      if (!known_.contains(name)) return Error{ErrorCode::usage, fmt::format("there is no parameter '{}' here", name)};
    }
    return std::nullopt;
  }

 private:
  const HttpRequest& request_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

std::string format_schedule(const StageSchedule& schedule) {
  std::string text =
      fmt::format("\"version\":{},\"kind\":\"{}\",\"from_iteration\":{},\"stage\":{},\"reason\":{}", schedule.version,
                  schedule.kind == StageSchedule::Kind::plan               ? "plan"
                  : schedule.kind == StageSchedule::Kind::profiling_window ? "profiling_window"
                                                                           : "maximum_clock",
                  schedule.from_iteration, schedule.stage_rank, json_quoted(schedule.reason));
  if (schedule.window >= 0) text += fmt::format(",\"window\":{}", schedule.window);
  if (schedule.iterations > 0) {
    text += fmt::format(",\"iterations\":{},\"then\":\"maximum_clock\"", schedule.iterations);
  }
  if (schedule.iteration_time) text += fmt::format(",\"iteration_time_s\":{}", schedule.iteration_time->value());
  if (schedule.all_max_time) text += fmt::format(",\"maximum_clock_time_s\":{}", schedule.all_max_time->value());
  if (schedule.slower_on_purpose) text += fmt::format(",\"slower_because\":{}", json_quoted(schedule.reason));
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

std::string plan_json(const PlanAnswer& answer) {
  if (!answer.schedule) return fmt::format("{{\"rank\":{},\"unchanged\":true}}", answer.rank);
  auto& text = answer.schedule->rendered["v1"];
  if (!text) text = std::make_shared<const std::string>(format_schedule(*answer.schedule));
  return fmt::format("{{\"rank\":{},\"pipeline\":{},{}", answer.rank, answer.pipeline, *text);
}

/// An event stream from a subscription, taken back when its reader goes.
void send_event(const Responder& responder, const JobEvent& event) {
  responder.event(std::to_string(event.sequence), event.kind, event_json(event));
}

std::string straggler_json(const StragglerSet& set) {
  std::string text = "{\"notices\":[";
  for (std::size_t i = 0; i < set.notices.size(); ++i) {
    const auto& notice = set.notices[i];
    text += fmt::format("{}{{\"job\":{},\"id\":{},\"pipeline\":{},\"at_s\":{}}}", i == 0 ? "" : ",",
                        json_quoted(notice.job), json_quoted(notice.id), notice.pipeline, notice.at_s);
  }
  return text + "]}";
}

template <class T>
std::optional<T> body_of(const Call& call) {
  auto body = parse_json_as<T>(call.request.body, "body");
  if (body) return std::move(*body);
  call.fail({ErrorCode::invalid_input, body.error().message});
  return std::nullopt;
}

}  // namespace

void Api::list_jobs(Call call) {
  std::vector<ListedJob> jobs = service_.jobs();
  if (call.identity.role == Role::job) {
    std::erase_if(jobs, [&](const ListedJob& listed) { return reaches(call.identity, listed.row.job) != true; });
  }
  for (ListedJob& listed : jobs) listed.summary.owner.clear();
  call.answer(jobs_json(jobs, clock_.now_s()));
}

void Api::register_job(Call call) {
  auto body = body_of<JobBody>(call);
  if (!body) return;
  for (const auto& [pipeline, profile] : body->profile_of) {
    const auto number = number_from<int>("profile_of", pipeline, "the number of a pipeline");
    if (!number) return call.fail(number.error());
    body->job.profile_of.emplace(*number, profile);
  }
  auto job = owned(call, std::move(body->job));
  if (!job) return call.fail(job.error());
  service_.register_job(*std::move(job), then<RegisteredJob>(call, [](const RegisteredJob& made) {
    return fmt::format("{{\"job\":{},\"state\":\"{}\"}}", json_quoted(made.job), made.state);
  }));
}

void Api::show_job(Call call) {
  service_.job(call.parts[0],
               then<JobView>(call, [this](const JobView& view) { return job_json(view, options_.factors); }));
}

void Api::register_rank(Call call) {
  auto body = body_of<RegisterRank>(call);
  if (!body) return;
  body->job = call.parts[0];
  service_.register_rank(std::move(*body), then<RegisteredRank>(call, [](const RegisteredRank& rank) {
                           return fmt::format("{{\"registered\":{},\"expected\":{}}}", rank.registered, rank.expected);
                         }));
}

void Api::next_plan(Call call) {
  Parameters parameters(call.request);
  WaitForPlan wait;
  wait.job = call.parts[0];
  const auto rank = number_from<int>("rank", call.parts[1], "a rank's number");
  if (!rank) return call.fail(rank.error());
  wait.rank = *rank;
  wait.have_version = parameters.take<std::int64_t>("have", "the version of a plan").value_or(0);
  wait.iteration = parameters.take<std::int64_t>("iteration", "an iteration's number");
  wait.max_wait_s = parameters.take<double>("wait_s", "a number of seconds");
  if (const auto error = parameters.error()) return call.fail(*error);
  wait_for_plan(call, std::move(wait), plan_json);
}

void Api::drop_plan(Call call) {
  auto body = body_of<DropPlan>(call);
  if (!body) return;
  const auto rank = number_from<int>("rank", call.parts[1], "a rank's number");
  if (!rank) return call.fail(rank.error());
  body->job = call.parts[0];
  body->rank = *rank;
  service_.drop_plan(std::move(*body), then_ok(call));
}

void Api::report_iterations(Call call) {
  auto body = body_of<ReportIterations>(call);
  if (!body) return;
  body->job = call.parts[0];
  service_.report_iterations(std::move(*body), then<ReportedIterations>(call, [](const ReportedIterations& reported) {
                               std::string text = "{\"rejected\":[";
                               for (const std::string& why : reported.rejected) {
                                 text += (text.back() == '[' ? "" : ",") + json_quoted(why);
                               }
                               return text + "]}";
                             }));
}

void Api::finish_job(Call call) { service_.finish_job(call.parts[0], then_ok(call)); }

void Api::delete_job(Call call) {
  service_.remove_job(call.parts[0], then_ok(call));
  owners_.erase(call.parts[0]);
}

void Api::upload_profile(Call call) {
  auto body = body_of<ProfileBody>(call);
  if (!body) return;
  service_.upload_profile(call.parts[0], std::move(body->profile), body->pipelines, then_ok(call));
}

using Frontier = std::shared_ptr<const CharacterisedPipeline>;

void Api::frontier(Call call) {
  Parameters parameters(call.request);
  const int pipeline = parameters.take<int>("pipeline", "a pipeline's number").value_or(0);
  if (const auto error = parameters.error()) return call.fail(*error);
  service_.frontier(call.parts[0], pipeline, then<Frontier>(call, [](const Frontier& found) {
                      std::string text;
                      write_frontier_data(found->dag, found->frontier, [&](std::string_view piece) { text += piece; });
                      return text;
                    }));
}

namespace {

void answer_timeline(const Call& call, const CharacterisedPipeline& shown, int point) {
  if (point >= static_cast<int>(shown.frontier.points.size())) {
    return call.fail(
        {ErrorCode::not_found, fmt::format("point {}: the frontier has {}", point, shown.frontier.points.size())});
  }
  std::string text;
  write_timeline_data(shown.dag, shown.frontier.points[point].plan, [&](std::string_view piece) { text += piece; });
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
    service_.timeline(job, pipeline, [call = std::move(call)](const Result<TimelineView>& found) {
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
  const Responder responder = call.responder;
  const std::string job = call.parts[0];
  service_.subscribe(
      job, after.value_or(-1), [responder](const JobEvent& event) { send_event(responder, event); },
      [this, call = std::move(call)](const Result<SubscriptionId>& subscription) {
        if (!subscription) return call.fail(subscription.error());
        call.responder.open_stream();
        keep_open(call, *subscription);
      });
}

void Api::all_events(Call call) {
  call.responder.open_stream();
  const Responder responder = call.responder;
  const SubscriptionId subscription =
      service_.subscribe_all([this, responder, identity = call.identity](const JobEvent& event) {
        if (reaches(identity, event.job) == true) send_event(responder, event);
      });
  keep_open(call, subscription);
}

void Api::set_straggler(Call call) {
  auto body = body_of<SetStraggler>(call);
  if (!body) return;
  service_.set_straggler(std::move(*body), then<StragglerSet>(call, straggler_json));
}

void Api::set_job_straggler(Call call) {
  auto body = body_of<SetStraggler>(call);
  if (!body) return;
  body->job = call.parts[0];
  service_.set_straggler(std::move(*body), then<StragglerSet>(call, straggler_json));
}

void Api::withdraw_straggler(Call call) { service_.withdraw_straggler({call.parts[0], call.parts[1]}, then_ok(call)); }

void Api::set_policy(Call call) {
  // The same form as in the log: an object with one member, the kind. What is one JSON value stays one within another.
  if (const auto alone = parse_json(call.request.body, "body"); !alone) return call.fail(alone.error());
  call.request.body = fmt::format("{{{}:{}}}", json_quoted(call.parts[1]), call.request.body);
  const auto body = body_of<PolicyMembers>(call);
  if (!body) return;
  const auto policy = policy_of(*body);
  if (!policy) return call.fail(wrong_parameter("kind", call.parts[1], "power_cap, pinned or max_slowdown"));
  service_.set_policy({call.parts[0], *policy}, then_ok(call));
}

void Api::clear_policy(Call call) { service_.clear_policy({call.parts[0], call.parts[1]}, then_ok(call)); }

void Api::list_profiles(Call call) {
  service_.profiles(then<std::vector<std::string>>(call, [](const std::vector<std::string>& names) {
    std::string text = "{\"profiles\":[";
    for (const std::string& name : names) text += (text.back() == '[' ? "" : ",") + json_quoted(name);
    return text + "]}";
  }));
}

void Api::show_profile(Call call) {
  service_.profile(call.parts[0],
                   then<NamedProfile>(call, [](const NamedProfile& profile) { return json_text(profile); }));
}

void Api::put_profile(Call call) {
  auto body = body_of<NamedProfile>(call);
  if (!body) return;
  body->name = call.parts[0];
  service_.put_profile(std::move(*body), then<StoredProfile>(call, [](const StoredProfile& stored) {
                         return fmt::format("{{\"name\":{},\"stages\":{},\"ranks\":{}}}", json_quoted(stored.name),
                                            stored.stages, stored.ranks);
                       }));
}

void Api::remove_profile(Call call) { service_.remove_profile(call.parts[0], then_ok(call)); }

namespace {

/// Jobs' tokens see what their team has learned, the others everything.
bool is_for(const Identity& identity, const LearnedProfile& learned) {
  return identity.role != Role::job || learned.team == identity.team;
}

}  // namespace

void Api::list_learned(Call call) {
  const auto format = [identity = call.identity](const std::vector<LearnedProfile>& all) {
    std::string text = "{\"profiles\":[";
    for (const LearnedProfile& one : all) {
      if (!is_for(identity, one)) continue;
      text += fmt::format("{}{{\"id\":{},\"team\":{},\"model\":{},\"job\":{},\"learned_at_s\":{}}}",
                          text.back() == '[' ? "" : ",", json_quoted(one.id), json_quoted(one.team),
                          json_quoted(one.model), json_quoted(one.job), one.learned_at_s);
    }
    return text + "]}";
  };
  service_.learned_profiles(then<std::vector<LearnedProfile>>(call, format));
}

void Api::forget_learned(Call call) {
  service_.learned_profiles([this, call = std::move(call)](const Result<std::vector<LearnedProfile>>& all) {
    if (!all) return call.fail(all.error());
    const std::string& id = call.parts[0];
    const bool known = std::ranges::any_of(
        *all, [&](const LearnedProfile& one) { return one.id == id && is_for(call.identity, one); });
    if (known) return service_.forget_learned(id, then_ok(call));
    call.fail({ErrorCode::not_found, fmt::format("no profile was learned under the id '{}'", id)});
  });
}

void Api::list_tokens(Call call) {
  std::string text = "{\"tokens\":[";
  for (const TokenRow& token : tokens_.list()) {
    text += fmt::format("{}{{\"id\":\"{}\",\"role\":\"{}\",\"job\":{},\"name\":{},\"team\":{},\"created_at_s\":{}",
                        text.back() == '[' ? "" : ",", token.hash, token.role, json_quoted(token.job),
                        json_quoted(token.name), json_quoted(token.team), token.created_s);
    if (token.expires_s > 0) text += fmt::format(",\"expires_at_s\":{}", token.expires_s);
    text += '}';
  }
  call.answer(text + "]}");
}

void Api::make_token(Call call) {
  const auto body = body_of<TokenBody>(call);
  if (!body) return;
  for (const auto& [what, text] : {std::pair{"name", body->name}, {"team", body->team}, {"job", body->job}}) {
    if (const Status checked = check_text(what, text, 256); !checked) return call.fail(checked.error());
  }
  TokenRow wanted;
  wanted.role = body->role;
  wanted.job = body->job;
  wanted.name = body->name;
  wanted.team = body->team;
  if (const Status possible = check_token(wanted); !possible) return call.fail(possible.error());
  if (!tokens_.required()) {
    if (wanted.role != name_of(Role::infrastructure)) {
      return call.fail({ErrorCode::conflict,
                        "the first token must have the role infrastructure: without one, nobody "
                        "could make another"});
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
  const NewToken token = server::make_token(std::move(wanted), now_s);
  tokens_.put(token.row, [call, token](const Status& put) {
    if (!put) return call.fail(put.error());
    HttpResponse made = json_response(
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

}  // namespace perseus::server
