#include "tests/server/scenario/over_http.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <charconv>

#include "base/error_table.h"
#include "io/formats/json_reader.h"
#include "server/jobs/api_answers.h"
#include "server/jobs/api_bodies.h"
#include "server/jobs/describe_view.h"

namespace perseus::testing {

using namespace jobs;
using namespace service;
using namespace routes;
namespace asio = boost::asio;
using asio::ip::tcp;

/// One connection with one request.
class OverHttp::Client {
 public:
  Client(asio::io_context& io, std::uint16_t port, const std::string& text) : socket_(io) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
    asio::write(socket_, asio::buffer(text));
    socket_.non_blocking(true);
  }
  /// The complete answer so far: its body, or its error. Nothing if it is incomplete.
  std::optional<Result<std::string>> answer() {
    std::array<char, 65536> bytes{};
    boost::system::error_code problem;
    while (true) {
      const std::size_t count = socket_.read_some(asio::buffer(bytes), problem);
      if (problem) break;
      text_.append(bytes.data(), count);
    }
    constexpr std::string_view length_header = "Content-Length: ";
    const std::size_t head = text_.find("\r\n\r\n");
    const std::size_t at = text_.find(length_header);
    if (head == std::string::npos || at == std::string::npos) return std::nullopt;
    std::size_t length = 0;
    std::from_chars(text_.data() + at + length_header.size(), text_.data() + head, length);
    if (text_.size() < head + 4 + length) return std::nullopt;
    const std::string body = text_.substr(head + 4);
    if (text_.starts_with("HTTP/1.1 200 ")) return Result<std::string>(body);
    return Result<std::string>(error_in(body));
  }
  void close() { socket_.close(); }

 private:
  static Error error_in(const std::string& body) {
    const auto document = formats::parse_json(body, "answer");
    if (!document) return document.error();
    formats::JsonFields fields(document->root());
    formats::JsonFields error(fields.value("error"));
    const std::string code(error.string("code"));
    for (const ErrorEntry& entry : error_table()) {
      if (entry.name == code) return {entry.code, std::string(error.string("message"))};
    }
    return {ErrorCode::internal, "an error without a code: " + body};
  }

  tcp::socket socket_;
  std::string text_;
};

OverHttp::OverHttp() {
  token_store_ = std::make_unique<TestStore>([](const std::function<void()>& work) { work(); }, database_);
  tokens_ = std::make_unique<access::Tokens>(*token_store_);
  open();
}

OverHttp::~OverHttp() {
  api_.reset();
  io_.restart();
  io_.poll();
}

void OverHttp::open() { api_ = std::make_unique<ApiOnPort>(io_, inner_.service(), *tokens_, clock_); }

void OverHttp::settle() {
  io_.restart();
  do inner_.settle();
  while (io_.poll() > 0);
}

void OverHttp::restart() { start_anew(&InProcess::restart); }
void OverHttp::stop_and_start() { start_anew(&InProcess::stop_and_start); }

void OverHttp::start_anew(void (InProcess::*way)()) {
  api_.reset();  // from here on, no request gets an answer
  io_.restart();
  io_.poll();
  (inner_.*way)();
  open();
}

void OverHttp::go_to(double seconds) {
  inner_.go_to(seconds);
  settle();
}
void OverHttp::hold_work(bool hold) {
  inner_.hold_work(hold);
  settle();
}
void OverHttp::freeze_store(bool frozen) {
  inner_.freeze_store(frozen);
  settle();
}

namespace {

std::string request_text(const std::string& method, const std::string& target, const std::string& body) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", method,
      target, body.size(), body);
}

std::string in_job(const std::string& job, const std::string& rest) {
  return "/v1/jobs/" + http::percent_encode(job) + rest;
}

Status status_of(const Result<std::string>& answer) {
  if (answer) return Ok{};
  return answer.error();
}

}  // namespace

Result<std::string> OverHttp::ask(const std::string& method, const std::string& target, const std::string& body) {
  Client client(io_, api_->port(), request_text(method, target, body));
  // The kernel delivers local writes at once in practice, but does not guarantee it.
  std::optional<Result<std::string>> answer;
  for (int turn = 0; !answer; ++turn) {
    PERSEUS_CHECK(turn < 1'000'000, ("no answer to " + method + " " + target).c_str());
    settle();
    answer = client.answer();
  }
  return *std::move(answer);
}

namespace {

std::string profile_body(const jobs::NamedProfile& profile) { return jobs::json_text(jobs::ProfileBody{profile, {}}); }

}  // namespace

Status OverHttp::put_profile(const jobs::NamedProfile& profile) {
  return status_of(ask("PUT", "/v1/profiles/" + http::percent_encode(profile.name), profile_body(profile)));
}

Result<jobs::RegisterJobAnswer> OverHttp::register_job(const jobs::RegisterJob& request) {
  if (request.tier_bounded) return inner_.register_job(request);  // these calls have no token
  jobs::RegisterJobBody body{request, {}};
  for (const auto& [pipeline, profile] : request.profile_of) body.profile_of[std::to_string(pipeline)] = profile;
  const auto answer = ask("POST", "/v1/jobs", jobs::json_text(body));
  return answer ? jobs::parse_json_as<jobs::RegisterJobAnswer>(*answer, "answer") : answer.error();
}

Status OverHttp::register_rank(const jobs::RegisterRank& request) {
  return status_of(ask("POST", in_job(request.job, "/ranks"), jobs::json_text(request)));
}
Status OverHttp::upload_profile(const std::string& job, const jobs::NamedProfile& profile) {
  return status_of(ask("PUT", in_job(job, "/profile"), profile_body(profile)));
}
Status OverHttp::report_iterations(const jobs::ReportIterations& request) {
  return status_of(ask("POST", in_job(request.job, "/iterations"), jobs::json_text(request)));
}
Status OverHttp::drop_plan(const jobs::DropPlan& request) {
  return status_of(
      ask("POST", in_job(request.job, fmt::format("/ranks/{}/plan_dropped", request.rank)), jobs::json_text(request)));
}
Status OverHttp::see_shape(const jobs::SeeShape& request) {
  return status_of(
      ask("POST", in_job(request.job, fmt::format("/ranks/{}/shape", request.rank)), jobs::json_text(request)));
}
Status OverHttp::finish_job(const std::string& job) { return status_of(ask("POST", in_job(job, "/finish"))); }

Result<jobs::StragglerSet> OverHttp::set_straggler(const jobs::SetStraggler& request) {
  const auto answer = ask("POST", request.job.empty() ? "/v1/stragglers" : in_job(request.job, "/stragglers"),
                          jobs::json_text(request));
  return answer ? jobs::parse_json_as<jobs::StragglerSet>(*answer, "answer") : answer.error();
}

Status OverHttp::withdraw_straggler(const jobs::WithdrawStraggler& request) {
  return status_of(ask("DELETE", in_job(request.job, "/stragglers/" + http::percent_encode(request.id))));
}

Status OverHttp::set_policy(const jobs::SetPolicy& request) {
  const std::string body = std::visit([](const auto& policy) { return jobs::json_text(policy); }, request.policy);
  return status_of(ask("PUT", in_job(request.job, fmt::format("/policies/{}", jobs::kind_of(request.policy))), body));
}
Status OverHttp::clear_policy(const jobs::ClearPolicy& request) {
  return status_of(ask("DELETE", in_job(request.job, "/policies/" + http::percent_encode(request.kind))));
}

Status OverHttp::set_tier(const jobs::SetTier& request) {
  return status_of(
      ask("PUT", in_job(request.job, "/tier"), jobs::json_text(jobs::TierBody{request.tier, request.reset})));
}

namespace {

std::optional<Seconds> seconds_in(formats::JsonFields& fields, std::string_view name) {
  if (!fields.optional(name)) return std::nullopt;
  return Seconds(fields.number(name));
}

std::string text_in(formats::JsonFields& fields, std::string_view name) {
  return fields.optional(name) ? std::string(fields.string(name)) : "";
}

bool says_yes(formats::JsonFields& fields, std::string_view name) {
  const auto member = fields.optional(name);
  return member && member->boolean() && *member->boolean();
}

/// A job as the API answers with it.
struct JobAnswer {
  jobs::JobView view;
  jobs::EnergyFactors factors;
};
void describe(auto& f, MaybeConst<JobAnswer> auto& answer) { describe_job(f, answer.view, answer.factors); }

}  // namespace

/// The functions with which scenarios inspect the state.
Result<jobs::JobView> OverHttp::job(const std::string& job) {
  const auto answer = ask("GET", in_job(job, ""));
  if (!answer) return answer.error();
  settle();  // as in-process: the view may have scheduled work
  const auto again = ask("GET", in_job(job, ""));
  if (!again) return again.error();
  auto read = jobs::parse_json_as<JobAnswer>(*again, "answer");
  if (!read) return read.error();
  return std::move(read->view);
}

Status OverHttp::set_site(const std::string& document) {
  Status set = status_of(document.empty() ? ask("DELETE", "/v1/site") : ask("PUT", "/v1/site", document));
  inner_.service().tick();
  settle();
  return set;
}

Status OverHttp::read_meter(const std::string& readings) { return status_of(ask("POST", "/v1/site/meter", readings)); }

Status OverHttp::release_admission(const std::string& job) {
  return status_of(ask("DELETE", "/v1/site/admission/" + http::percent_encode(job)));
}

int OverHttp::wait_for_plan(const jobs::WaitForPlan& request) {
  std::string target = in_job(request.job, fmt::format("/ranks/{}/plan?have={}", request.rank, request.have_version));
  if (request.iteration) target += fmt::format("&iteration={}", *request.iteration);
  if (request.max_wait_s) target += fmt::format("&wait_s={}", *request.max_wait_s);
  if (request.epoch != 0) target += fmt::format("&epoch={}", request.epoch);
  waits_.push_back(std::make_unique<Client>(io_, api_->port(), request_text("GET", target, "")));
  // The request has begun when the server has answered the request after it.
  (void)ask("GET", "/healthz").ok();
  return static_cast<int>(waits_.size()) - 1;
}

void OverHttp::close_wait(int wait) {
  waits_[wait]->close();
  settle();
}

std::optional<Result<jobs::PlanAnswer>> OverHttp::answer_of(int wait) {
  settle();
  const auto answer = waits_[wait]->answer();
  if (!answer) return std::nullopt;
  if (!*answer) return Result<jobs::PlanAnswer>(answer->error());
  const auto document = formats::parse_json(**answer, "answer");
  if (!document) return Result<jobs::PlanAnswer>(document.error());
  formats::JsonFields fields(document->root());
  jobs::PlanAnswer plan{nullptr, fields.integer("rank")};
  if (says_yes(fields, "unchanged")) return Result<jobs::PlanAnswer>(plan);
  auto schedule = std::make_shared<jobs::StageSchedule>();
  schedule->version = fields.integer("version");
  schedule->from_iteration = fields.integer("from_iteration");
  schedule->reason = text_in(fields, "reason");
  if (fields.optional("window")) schedule->window = fields.integer("window");
  if (fields.optional("iterations")) schedule->iterations = fields.integer("iterations");
  schedule->iteration_time = seconds_in(fields, "iteration_time_s");
  schedule->all_max_time = seconds_in(fields, "maximum_clock_time_s");
  if (fields.optional("saving_pct")) schedule->saving_pct = fields.number("saving_pct");
  schedule->modeled = says_yes(fields, "modeled");
  if (const auto budget = fields.optional("budget")) {
    jobs::BudgetAnswer of;
    if (const Status read = formats::read_json(*budget, of); !read) return Result<jobs::PlanAnswer>(read.error());
    schedule->budget = jobs::PowerBudget{0, of.lease_s, of.ceiling_mhz, of.at_once, {}, of.paced_iteration_s};
    for (const jobs::LaterCeilingAnswer& later : of.ahead) {
      schedule->budget->ahead.push_back({later.at_s, 0, later.ceiling_mhz, later.paced_iteration_s});
    }
  }
  schedule->slower_on_purpose = fields.optional("slower_because").has_value();
  if (schedule->slower_on_purpose) schedule->reason = fields.string("slower_because");
  const std::string kind(fields.string("kind"));
  schedule->kind = kind == "plan"               ? jobs::StageSchedule::Kind::plan
                   : kind == "profiling_window" ? jobs::StageSchedule::Kind::profiling_window
                                                : jobs::StageSchedule::Kind::maximum_clock;
  const Status read = fields.value("clocks").for_each([&](const formats::JsonReader& pair) -> Status {
    std::vector<formats::JsonReader> parts;
    const Status both = pair.for_each([&](const formats::JsonReader& part) -> Status {
      parts.push_back(part);
      return Ok{};
    });
    if (!both || parts.size() != 2) return pair.error("an instruction and a clock");
    schedule->clocks.push_back({std::string(parts[0].string() ? *parts[0].string() : ""),
                                Megahertz(parts[1].integer() ? *parts[1].integer() : -1)});
    return Ok{};
  });
  if (!read) return Result<jobs::PlanAnswer>(read.error());
  if (fields.optional("microbatches")) schedule->microbatches = fields.integer("microbatches");
  if (const auto shapes = fields.optional("shapes")) {
    const Status of_shapes = shapes->for_each([&](const formats::JsonReader& entry) -> Status {
      formats::JsonFields members(entry);
      jobs::StageSchedule::OfShape& shape = schedule->shapes.emplace_back();
      shape.microbatches = members.integer("microbatches");
      shape.iteration_time = Seconds(members.number("iteration_time_s"));
      return members.value("clocks").for_each([&](const formats::JsonReader&) -> Status {
        shape.clocks.emplace_back();
        return Ok{};
      });
    });
    if (!of_shapes) return Result<jobs::PlanAnswer>(of_shapes.error());
  }
  if (fields.error()) return Result<jobs::PlanAnswer>(*fields.error());
  plan.schedule = std::move(schedule);
  return Result<jobs::PlanAnswer>(plan);
}

}  // namespace perseus::testing
