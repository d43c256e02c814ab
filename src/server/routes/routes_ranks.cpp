// Calls of /v1 from ranks: registration, plans, reports, and the exchange of a relay.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "server/jobs/api_bodies.h"
#include "server/live/registration_checks.h"
#include "server/routes/call_input.h"
#include "server/routes/exchange.h"

namespace perseus::routes {
namespace {

constexpr double kLongestExchange_s = 60;
constexpr std::size_t kMostInAnExchange = 1024;

/// Formats answers to a request that arrives now.
template <class Answer>
std::function<std::string(const Answer&)> timed(const Clock& clock,
                                                std::string (*format)(const Answer&, const AnswerTimes&)) {
  return [&clock, format, arrived_s = clock.now_s()](const Answer& answer) {
    const double now_s = clock.now_s();
    return format(answer, {now_s, now_s - arrived_s});
  };
}

}  // namespace

void Api::register_rank(Call call) {
  Parameters parameters(call.request);
  const auto plan = parameters.text("plan");
  if (plan && *plan != "true" && *plan != "false") {
    return call.fail(wrong_parameter("plan", *plan, "true or false"));
  }
  if (const auto error = parameters.error()) return call.fail(*error);
  take_body(std::move(call), &Api::register_rank_of);
}

void Api::register_rank_of(Call call, jobs::RegisterRank body) {
  body.job = call.parts[0];
  body.with_plan = call.request.parameter("plan") == "true";
  service_.registrations.register_rank(std::move(body),
                                       then<jobs::RegisterRankAnswer>(call, timed(clock_, registered_json)));
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
      parameters.take<std::int64_t>("epoch", fmt::format("the epoch of the rank's process, 0 to {}", live::kMostEpoch))
          .value_or(0);
  wait.max_wait_s = parameters.take<double>("wait_s", "a number of seconds");
  if (const auto error = parameters.error()) return call.fail(*error);
  // Spreads the repeated requests of a cluster's ranks over time.
  const double bound_s = options_.longest_wait_s * std::uniform_real_distribution<double>(0.5, 1)(draw_);
  wait.max_wait_s = std::min(wait.max_wait_s.value_or(bound_s), bound_s);
  wait_for_plan(call, std::move(wait), timed(clock_, plan_json));
}

void Api::drop_plan(Call call, jobs::DropPlan body) {
  const auto rank = number_from<int>("rank", call.parts[1], "a rank's number");
  if (!rank) return call.fail(rank.error());
  body.job = call.parts[0];
  body.rank = *rank;
  service_.operations.drop_plan(std::move(body), then_ok(call));
}

void Api::see_shape(Call call, jobs::SeeShape body) {
  const auto rank = number_from<int>("rank", call.parts[1], "a rank's number");
  if (!rank) return call.fail(rank.error());
  body.job = call.parts[0];
  body.rank = *rank;
  service_.operations.see_shape(std::move(body), then_ok(call));
}

void Api::rank_ended(Call call, NoBody /*body*/) {
  Parameters parameters(call.request);
  const auto epoch = parameters.take<std::int64_t>("epoch", "the epoch of the rank's process").value_or(0);
  if (const auto error = parameters.error()) return call.fail(*error);
  const auto rank = number_from<int>("rank", call.parts[1], "a rank's number");
  if (!rank) return call.fail(rank.error());
  service_.waiting.ended(call.parts[0], *rank, epoch);
  then_ok(call)(Ok{});
}

void Api::report_iterations(Call call, jobs::ReportIterations body) {
  body.job = call.parts[0];
  service_.reports.report(std::move(body), then<jobs::ReportedIterations>(call, reported_json));
}

template <>
Result<ParsedExchange> parse_body<ParsedExchange>(std::string_view text) {
  auto body = parse_body<jobs::ExchangeBody>(text);
  if (!body) return body.error();
  const std::size_t count = body->ranks.size() + body->reports.size() + body->waits.size();
  if (count > kMostInAnExchange) {
    return Error{ErrorCode::too_large,
                 fmt::format("{} ranks, reports and waits; allowed: {}", count, kMostInAnExchange)};
  }
  ParsedExchange parsed{*std::move(body), {}};
  const auto read = []<class Part>(std::vector<jobs::BodyFor>& bodies, std::vector<Result<Part>>& parts) {
    for (jobs::BodyFor& part : bodies) {
      parts.push_back(parse_body<Part>(std::exchange(part.body, {})));
      if (parts.back()) parts.back()->job = part.job;
    }
  };
  read(parsed.body.ranks, parsed.parts.ranks);
  read(parsed.body.reports, parsed.parts.reports);
  return parsed;
}

void Api::exchange(Call call, ParsedExchange asked) {
  const jobs::ExchangeBody& body = asked.body;
  if (!(body.wait_s >= 0 && body.wait_s <= kLongestExchange_s)) {
    return call.fail(
        wrong_parameter("wait_s", fmt::format("{}", body.wait_s), fmt::format("0 to {} seconds", kLongestExchange_s)));
  }
  std::set<std::string> jobs;
  for (const jobs::BodyFor& rank : body.ranks) jobs.insert(rank.job);
  for (const jobs::BodyFor& report : body.reports) jobs.insert(report.job);
  for (const jobs::WaitForPlan& wait : body.waits) jobs.insert(wait.job);
  read_jobs(call.identity, jobs, [this, call, asked = std::move(asked)](const Unread& unread) mutable {
    carry_out(call, std::move(asked), unread);
  });
}

void Api::carry_out(const Call& call, ParsedExchange asked, const Unread& unread) {
  auto& [body, parts] = asked;
  parts.wait_s = body.wait_s;
  const auto check = [&](const std::vector<jobs::BodyFor>& bodies, auto& requests) {
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      if (const Status may = reached(call.identity, bodies[i].job, unread); !may) requests[i] = may.error();
    }
  };
  check(body.ranks, parts.ranks);
  check(body.reports, parts.reports);
  for (auto& rank : parts.ranks) {
    if (rank) rank->with_plan = true;
  }
  for (jobs::WaitForPlan& wait : body.waits) {
    const Status may = reached(call.identity, wait.job, unread);
    parts.waits.push_back(may ? Result<jobs::WaitForPlan>(std::move(wait)) : may.error());
  }
  const std::size_t waits = std::max<std::size_t>(parts.waits.size(), 1);
  if (refuse_if_full(call, access::HeldCalls::Kind::wait, waits)) return;
  std::make_shared<Exchange>(service_, clock_, options_.later, held_, call.responder)
      ->start(std::move(parts), {call.identity, call.request.peer, access::HeldCalls::Kind::wait, waits});
}

}  // namespace perseus::routes
