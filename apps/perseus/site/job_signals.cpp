#include "site/job_signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/percent_encode.h"
#include "io/formats/json_reader.h"
#include "remote/server_call.h"
#include "server/jobs/describe.h"

namespace perseus::cli {
namespace {

using formats::JsonFields;
using formats::JsonReader;
using openadr::SignalStep;

constexpr std::string_view kUnitEnding = " per kWh, of OpenADR";

Result<formats::JsonDocument> list_of(const http::HttpPeer& server, const std::string& target, std::string_view list) {
  const auto body = call_pages(server, {"GET", target, ""}, list);
  if (!body) return body.error();
  return formats::parse_json(*body, "GET " + target);
}

/// Members that only a newer server knows are passed over: no job may keep the signals from the others.
Result<jobs::MaxSlowdown> slowdown_in(const JsonReader& json) {
  jobs::MaxSlowdown policy;
  JsonFields fields(json);
  policy.slowdown = fields.number("slowdown");
  if (fields.optional("threshold")) policy.threshold = fields.number("threshold");
  if (fields.optional("unit")) policy.unit = fields.string("unit");
  if (const auto signal = fields.optional("signal")) {
    const Status read = signal->for_each([&](const JsonReader& sample) -> Status {
      JsonFields members(sample);
      policy.signal.push_back({members.number("from_s"), members.number("value")});
      if (members.error()) return *members.error();
      return Ok{};
    });
    if (!read) return read.error();
  }
  if (fields.error()) return *fields.error();
  return policy;
}

Result<std::map<std::string, jobs::MaxSlowdown>> slowdowns(const http::HttpPeer& server) {
  const auto document = list_of(server, "/v1/policies?limit=1000", "policies");
  if (!document) return document.error();
  std::map<std::string, jobs::MaxSlowdown> all;
  JsonFields root(document->root());
  const Status read = root.value("policies").for_each([&](const JsonReader& row) -> Status {
    JsonFields fields(row);
    const auto policy = fields.optional("max_slowdown");
    if (!policy) return Ok{};
    auto one = slowdown_in(*policy);
    if (!one) return one.error();
    all.emplace(fields.string("job"), *std::move(one));
    if (fields.error()) return *fields.error();
    return Ok{};
  });
  if (!read) return read.error();
  return all;
}

Result<std::vector<std::string>> live_jobs(const http::HttpPeer& server, const std::string& selector) {
  std::string target = "/v1/jobs?limit=1000";
  if (!selector.empty()) target += "&selector=" + percent_encode(selector);
  const auto document = list_of(server, target, "jobs");
  if (!document) return document.error();
  std::vector<std::string> jobs;
  JsonFields root(document->root());
  const Status read = root.value("jobs").for_each([&](const JsonReader& row) -> Status {
    JsonFields fields(row);
    const std::string_view state = fields.string("state");
    constexpr std::array<std::string_view, 4> live{"registered", "profiling", "characterizing", "deployed"};
    if (std::ranges::find(live, state) != live.end()) jobs.emplace_back(fields.string("id"));
    if (fields.error()) return *fields.error();
    return Ok{};
  });
  if (!read) return read.error();
  return jobs;
}

/// From a moment on.
std::vector<jobs::MaxSlowdown::Sample> signal_from(double now_s, const std::vector<jobs::MaxSlowdown::Sample>& signal) {
  const auto later = std::ranges::upper_bound(signal, now_s, {}, &jobs::MaxSlowdown::Sample::from_s);
  std::vector<jobs::MaxSlowdown::Sample> rest(later == signal.begin() ? later : later - 1, signal.end());
  if (!rest.empty()) rest.front().from_s = std::max(rest.front().from_s, now_s);
  return rest;
}

}  // namespace

Result<int> set_job_signals(const http::HttpPeer& server, const SignalPolicy& policy,
                            const std::vector<SignalStep>& steps, const std::function<void(const std::string&)>& log) {
  const auto jobs = live_jobs(server, policy.selector);
  if (!jobs) return jobs.error();
  const auto known = slowdowns(server);
  if (!known) return known.error();
  jobs::MaxSlowdown wanted{policy.slowdown, policy.threshold, {}, policy.payload + std::string(kUnitEnding)};
  for (const SignalStep& step : steps) {
    wanted.signal.push_back({step.from_s, step.value.value_or(policy.threshold)});
  }
  const std::string body = json_text(wanted);
  const bool says_nothing = std::ranges::none_of(steps, [](const SignalStep& step) { return step.value.has_value(); });
  int changed = 0;
  for (const std::string& job : *jobs) {
    const auto found = known->find(job);
    if (found == known->end() && says_nothing) continue;
    if (found != known->end()) {
      jobs::MaxSlowdown has = found->second;
      if (!has.unit.ends_with(kUnitEnding)) continue;
      has.threshold = has.threshold.value_or(0);
      has.signal = signal_from(wanted.signal.front().from_s, has.signal);
      if (has == wanted) continue;
    }
    if (changed == kMostChanges) break;
    const auto done = call_server(server, {"PUT", "/v1/jobs/" + percent_encode(job) + "/policies/max_slowdown", body});
    if (done) {
      ++changed;
    } else {
      log(fmt::format("job {}: {}", job, done.error().message));
    }
  }
  return changed;
}

}  // namespace perseus::cli
