#include "site/job_signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/json_writer.h"
#include "base/percent_encode.h"
#include "io/formats/json_reader.h"
#include "remote/server_call.h"

namespace perseus::cli {
namespace {

using formats::JsonFields;
using formats::JsonReader;
using openadr::SignalStep;

constexpr std::string_view kUnitEnding = " per kWh, of OpenADR";

std::string unit_of_policy(const SignalPolicy& policy) { return policy.payload + std::string(kUnitEnding); }

/// A policy max_slowdown as the server has it.
struct JobSlowdown {
  double slowdown = 0, threshold = 0;
  std::string unit;
  std::vector<SignalStep> signal;
};

Result<JobSlowdown> slowdown_in(const JsonReader& json) {
  JobSlowdown policy;
  JsonFields fields(json);
  policy.slowdown = fields.number("slowdown");
  if (fields.optional("threshold")) policy.threshold = fields.number("threshold");
  if (const auto unit = fields.optional("unit"); unit && unit->is_string()) policy.unit = std::string(*unit->string());
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

Result<formats::JsonDocument> list_of(const http::HttpPeer& server, const std::string& target, std::string_view list) {
  const auto body = call_pages(server, {"GET", target, ""}, list);
  if (!body) return body.error();
  return formats::parse_json(*body, "GET " + target);
}

Result<std::map<std::string, JobSlowdown>> slowdowns(const http::HttpPeer& server) {
  const auto document = list_of(server, "/v1/policies?limit=1000", "policies");
  if (!document) return document.error();
  std::map<std::string, JobSlowdown> all;
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
std::vector<SignalStep> signal_from(double now_s, const std::vector<SignalStep>& signal) {
  const auto later = std::ranges::upper_bound(signal, now_s, {}, &SignalStep::from_s);
  std::vector<SignalStep> rest(later == signal.begin() ? later : later - 1, signal.end());
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
  std::vector<SignalStep> signal = steps;
  for (SignalStep& step : signal) step.value = step.value.value_or(policy.threshold);
  const std::string unit = unit_of_policy(policy);
  const std::string body = json_object([&](JsonWriter& f) {
    f.always("slowdown", policy.slowdown);
    f.always("threshold", policy.threshold);
    f.always("signal", JsonList{signal, [](const SignalStep& step) {
                                  return JsonObject{[&step](JsonWriter& sample) {
                                    sample.always("from_s", step.from_s);
                                    sample.always("value", *step.value);
                                  }};
                                }});
    f.always("unit", unit);
  });
  const bool says_nothing = std::ranges::none_of(steps, [](const SignalStep& step) { return step.value.has_value(); });
  int changed = 0;
  for (const std::string& job : *jobs) {
    const auto found = known->find(job);
    if (found == known->end() && says_nothing) continue;
    if (found != known->end()) {
      const JobSlowdown& has = found->second;
      if (!has.unit.ends_with(kUnitEnding)) continue;
      if (has.unit == unit && has.slowdown == policy.slowdown && has.threshold == policy.threshold &&
          signal_from(signal.front().from_s, has.signal) == signal) {
        continue;
      }
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
