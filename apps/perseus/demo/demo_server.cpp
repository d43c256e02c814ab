#include "demo/demo_server.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <csignal>
#include <future>
#include <thread>
#include <utility>

#include "base/standard_streams.h"
#include "command_line/interrupt.h"
#include "io/formats/number.h"
#include "remote/answer_members.h"
#include "simulation/replay/kernel_state.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr const char* kServerLog = "server.log";
constexpr double kStart_s = 30;         // a server that does not serve by then did not start
constexpr double kAnswerSilence_s = 5;  // without an answer: print that

const json::value* value_at(const json::value& value, std::initializer_list<std::string_view> path) {
  const json::value* at = &value;
  for (const std::string_view name : path) {
    at = member_in(*at, name);
    if (at == nullptr) return nullptr;
  }
  return at;
}

}  // namespace

double number_at(const json::value& value, std::initializer_list<std::string_view> path, double otherwise) {
  const json::value* const found = value_at(value, path);
  return found != nullptr && found->is_number() ? found->to_number<double>() : otherwise;
}

std::string text_at(const json::value& value, std::initializer_list<std::string_view> path) {
  const json::value* const found = value_at(value, path);
  return found != nullptr && found->is_string() ? std::string(found->get_string().c_str()) : std::string();
}

Status DemoServer::start(const std::string& program, const DemoOptions& options) {
  auto server = replay::ChildProcess::start(
      {{program, "serve", "--listen", fmt::format("127.0.0.1:{}", options.server_port.value_or(0)), "--data",
        scratch_.file("server"), "--log-level", "warning",
        // For a demo of a minute: a good plan, not the best possible.
        "--profiling-tolerance-pct", "1", "--profiling-iterations", "20"},
       {},
       scratch_.file(kServerLog),
       true});
  if (!server) return server.error();
  process_ = std::make_unique<replay::ChildProcess>(*std::move(server));
  const std::string line = first_line(), marker = "serving on ";
  const std::size_t at = line.find(marker);
  if (at == std::string::npos) {
    return Error{ErrorCode::unavailable, "the server did not start: " + scratch_.end_of_log(kServerLog)};
  }
  peer_.url = line.substr(at + marker.size());
  peer_.timeout = std::chrono::seconds(20);
  stage_.begin(fmt::format("server up; dashboard: {}/", peer_.url));
  return Ok{};
}

std::string DemoServer::first_line() {
  std::string line;
  for (const double began_s = stage_.seconds(); line.empty() && stage_.seconds() - began_s < kStart_s;) {
    line = process_->read_line(0.1);
    if (line.empty() && process_->ended()) break;
    if (while_waiting_) while_waiting_();
  }
  return line;
}

void DemoServer::kill() {
  process_->signal(SIGKILL);
  process_->wait(5);
  process_.reset();
}

Status DemoServer::restart(const std::string& program, DemoOptions options) {
  const auto port = formats::number_in<int>(std::string_view(peer_.url).substr(peer_.url.rfind(':') + 1));
  PERSEUS_CHECK(port.has_value(), "a server prints the address at which it serves");
  options.server_port = *port;
  return start(program, options);
}

Result<json::value> DemoServer::ask(const std::string& method, const std::string& target, const std::string& body) {
  const auto answer = call_patiently({method, target, body});
  if (!answer) {
    constexpr double reaping_s = 1;  // connections break before a process can be waited for
    if (process_->wait(reaping_s)) return has_ended(process_->ended()->how);
    return Error{answer.error().code,
                 fmt::format("{}{} {}: {}", is_stopped() ? name() + " is stopped by a signal: " : "", method, target,
                             answer.error().message)};
  }
  boost::system::error_code problem;
  json::value value = json::parse(*answer, problem);
  if (problem) return Error{ErrorCode::unavailable, fmt::format("{} {}: the answer is not JSON", method, target)};
  return value;
}

Result<std::string> DemoServer::call_patiently(const http::HttpCall& call) {
  auto answer = std::async(std::launch::async, [&] { return call_server(peer_, call); });
  const double asked_s = stage_.seconds();
  while (answer.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    if (while_waiting_) while_waiting_();
    remark_if_stopped();
    if (stage_.seconds() - asked_s < kAnswerSilence_s) continue;
    stage_.remark_once("server silent", fmt::format("{} has not answered for {:g} s", name(), kAnswerSilence_s));
  }
  return answer.get();
}

bool DemoServer::is_stopped() const {
  const auto state = process_ && !process_->ended() ? replay::kernel_state_of(process_->pid()) : std::nullopt;
  return state && state->stopped;
}

std::string DemoServer::name() const { return fmt::format("the server (process {})", process_->pid()); }

void DemoServer::remark_if_stopped() {
  if (is_stopped()) stage_.remark_once("server stopped", name() + " is stopped by a signal");
}

void DemoServer::continue_if_stopped() const {
  if (is_stopped()) process_->signal(SIGCONT);
}

std::optional<Error> DemoServer::ended() const {
  if (const auto& end = process_->ended()) return has_ended(end->how);
  return std::nullopt;
}

Error DemoServer::has_ended(const std::string& how) const {
  return {ErrorCode::unavailable, "the server " + how + scratch_.end_of_log(kServerLog)};
}

void DemoServer::keep() const {
  write_error(fmt::format("the dashboard stays at {}/ until Ctrl-C\n", peer_.url));
  while (!InterruptGuard::interrupted() && !process_->ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void DemoServer::stop() {
  if (!process_) return;
  process_->signal(SIGTERM);
  process_->wait(5);
  process_.reset();
}

}  // namespace perseus::cli
