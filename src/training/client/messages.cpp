#include "training/client/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/utf8.h"
#include "io/formats/json_reader.h"
#include "io/http/http_message.h"

namespace perseus::client {
namespace {

/// An object's members without those that have no value.
class Members {
 public:
  void text(std::string_view key, const std::string& value) {
    if (!value.empty()) raw(key, http::json_quoted(value));
  }
  void number(std::string_view key, double value, double otherwise) {
    if (value != otherwise) raw(key, fmt::format("{}", value));
  }
  void raw(std::string_view key, std::string_view json) {
    fmt::format_to(std::back_inserter(text_), "{}\"{}\":{}", text_.empty() ? "{" : ",", key, json);
  }
  [[nodiscard]] std::string done() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

template <class Values, class Format>
std::string list(const Values& values, const Format& format) {
  std::string text = "[";
  for (const auto& value : values) {
    if (text.size() > 1) text += ',';
    text += format(value);
  }
  return text + "]";
}

std::string pipeline_of(const ClientOptions& o) {
  Members pipeline;
  if (o.action_table.empty()) {
    pipeline.raw("schedule", http::json_quoted(o.schedule.empty() ? "1f1b" : o.schedule));
  } else {
    pipeline.raw("schedule", http::json_quoted(o.schedule));
    pipeline.text("action_table", o.action_table);
  }
  if (o.microbatches > 0) pipeline.number("microbatches", o.microbatches, 0);
  pipeline.number("chunks", o.chunks, 1);
  pipeline.number("blocking_power_w", o.blocking_power_w, 0);
  pipeline.number("transfer_latency_s", o.transfer_latency_s, 0);
  return pipeline.done();
}

/// Instruction -> per iteration -> per occurrence.
std::string breakdown(const std::vector<MeasuredIteration>& iterations, double MeasuredComputation::*value) {
  Members members;
  for (int i = 0; i < model::kNumInstructions; ++i) {
    const auto instruction = static_cast<model::Instruction>(i);
    bool any = false;
    const std::string lists = list(iterations, [&](const MeasuredIteration& iteration) {
      std::string of_one = "[";
      for (const MeasuredComputation& computation : iteration.computations) {
        if (computation.instruction != instruction) continue;
        fmt::format_to(std::back_inserter(of_one), "{}{:.9g}", of_one.size() > 1 ? "," : "", computation.*value);
        any = true;
      }
      return of_one + "]";
    });
    if (any) members.raw(name_of(instruction), lists);
  }
  return members.done();
}

std::string number(double value) { return fmt::format("{:.9g}", value); }

/// [microbatch, chunk] of each planned clock, in their order.
Status read_computations(const formats::JsonReader& computations, std::vector<PlannedClock>& clocks) {
  std::size_t next = 0;
  Status read = computations.for_each([&](const formats::JsonReader& pair) -> Status {
    if (next == clocks.size()) return computations.error("as many entries as clocks");
    int place = 0;
    Status members = pair.for_each([&](const formats::JsonReader& part) -> Status {
      const auto id = part.integer();
      if (!id) return id.error();
      if (*id < -1) return part.error("an index, or -1");
      if (place == 0) clocks[next].microbatch = *id;
      if (place == 1) clocks[next].chunk = *id;
      ++place;
      return Ok{};
    });
    if (!members) return members;
    ++next;
    return place == 2 ? Status(Ok{}) : pair.error("[microbatch, chunk]");
  });
  if (!read) return read;
  return next == clocks.size() ? Status(Ok{}) : computations.error("as many entries as clocks");
}

}  // namespace

std::string new_job_body(const ClientOptions& o) {
  Members job;
  job.text("name", o.job_name);
  job.raw("degrees", fmt::format("{{\"dp\":{},\"pp\":{},\"tp\":{}}}", o.dp_degree, o.pp_degree, o.tp_degree));
  job.text("profile", o.profile);
  const bool shaped = !o.schedule.empty() || !o.action_table.empty();
  if (shaped || (o.profile.empty() && o.microbatches > 0)) {
    job.raw("pipeline", pipeline_of(o));
    if (o.profile.empty()) job.raw("profile_online", "true");
  }
  if (!o.facts.empty()) {
    Members facts;
    for (const auto& [key, value] : o.facts)
      facts.raw(http::json_quoted(key).substr(1, http::json_quoted(key).size() - 2), http::json_quoted(value));
    job.raw("facts", facts.done());
  }
  return job.done();
}

std::string rank_body(const ClientOptions& o, const RankFacts& facts) {
  Members rank;
  for (const auto& [key, value] : {std::pair{"rank", o.rank}, std::pair{"dp_rank", o.dp_rank},
                                   std::pair{"pp_rank", o.pp_rank}, std::pair{"tp_rank", o.tp_rank}}) {
    rank.raw(key, std::to_string(value));
  }
  if (!facts.clocks_mhz.empty()) {
    rank.raw("clocks_mhz", list(facts.clocks_mhz, [](int clock) { return std::to_string(clock); }));
  }
  rank.text("accelerator", facts.accelerator);
  rank.text("host", facts.host);
  rank.number("transfer_latency_s", o.transfer_latency_s, 0);
  rank.number("switch_latency_s", facts.switch_latency_s, 0);
  rank.number("blocking_power_w", facts.blocking_power_w, 0);
  rank.text("control", facts.control);
  rank.text("control_reason", facts.control_reason);
  if (facts.epoch != 0) rank.raw("epoch", std::to_string(facts.epoch));
  if (facts.replaces) rank.raw("replaces", "true");
  if (!facts.instructions.empty()) {
    rank.raw("instructions", list(facts.instructions, [](const std::string& name) { return http::json_quoted(name); }));
  }
  return rank.done();
}

std::string iterations_body(int rank, std::vector<MeasuredIteration> iterations, std::int64_t epoch, bool with_begins) {
  Members body;
  body.raw("rank", std::to_string(rank));
  if (epoch != 0) body.raw("epoch", std::to_string(epoch));
  const MeasuredIteration last = iterations.back();
  if (last.window >= 0) body.raw("window", std::to_string(last.window));
  body.raw("last_iteration", std::to_string(last.iteration));
  body.raw("plan_version", std::to_string(iterations.front().plan_version));
  std::erase_if(iterations, [](const MeasuredIteration& i) { return !i.missed.empty(); });
  if (iterations.empty()) body.text("missed", last.missed);
  body.raw("iteration_time_s", list(iterations, [](const auto& i) { return number(i.time_s); }));
  if (iterations.empty()) return body.done();
  if (std::ranges::all_of(iterations, [](const auto& i) { return i.energy_j >= 0; })) {
    body.raw("iteration_energy_j", list(iterations, [](const auto& i) { return number(i.energy_j); }));
  }
  if (last.window >= 0) {
    body.raw("time_s", breakdown(iterations, &MeasuredComputation::time_s));
    const bool energies = std::ranges::all_of(iterations, [](const MeasuredIteration& i) {
      return std::ranges::all_of(i.computations, [](const auto& c) { return c.energy_j >= 0; });
    });
    if (energies) body.raw("energy_j", breakdown(iterations, &MeasuredComputation::energy_j));
    body.raw("throttled", list(iterations, [](const auto& i) { return i.throttled ? "true" : "false"; }));
    if (!with_begins) return body.done();
    body.raw("begin_s", breakdown(iterations, &MeasuredComputation::begin_s));
    body.raw("end_s", breakdown(iterations, &MeasuredComputation::end_s));
  }
  return body.done();
}

std::string plan_dropped_body(const DroppedPlan& dropped, std::int64_t epoch) {
  Members body;
  if (epoch != 0) body.raw("epoch", std::to_string(epoch));
  body.raw("version", std::to_string(dropped.version));
  body.raw("reason", http::json_quoted(dropped.reason));
  body.raw("measured_time_s", number(dropped.measured_s));
  body.raw("promised_time_s", number(dropped.promised_s));
  return body.done();
}

namespace {

Result<std::unique_ptr<ClockPlan>> plan_from(const formats::JsonReader& answer, const RankFacts& facts) {
  formats::JsonFields fields(answer);
  if (const auto unchanged = fields.optional("unchanged")) {
    const auto is = unchanged->boolean();
    if (!is) return is.error();
    if (*is) return std::unique_ptr<ClockPlan>();
  }
  auto plan = std::make_unique<ClockPlan>();
  const std::string_view kind = fields.string("kind");
  const double version = fields.number("version");
  const double from = fields.number("from_iteration");
  if (fields.error()) return *fields.error();
  if (kind == "plan") {
    plan->kind = ClockPlan::Kind::plan;
  } else if (kind == "profiling_window") {
    plan->kind = ClockPlan::Kind::profiling_window;
  } else if (kind != "maximum_clock") {
    return fields.value("kind").error("plan, profiling_window or maximum_clock");
  }
  constexpr double most = 9e15;
  if (!(version >= 1 && version < most)) return fields.value("version").error("1 or more");
  if (!(std::abs(from) < most)) return fields.value("from_iteration").error("an iteration's number");
  plan->version = static_cast<std::int64_t>(version);
  plan->from_iteration = static_cast<std::int64_t>(from);
  if (plan->kind == ClockPlan::Kind::profiling_window) {
    plan->window = fields.integer("window");
    const auto iterations = fields.optional("iterations");
    if (iterations) {
      const auto count = iterations->integer();
      if (!count) return count.error();
      plan->iterations = *count;
    }
    if (const auto then = fields.optional("then")) {
      const auto what = then->string();
      if (!what) return what.error();
      plan->then_maximum = *what == "maximum_clock" && plan->iterations > 0;
    }
  }
  if (const auto time = fields.optional("iteration_time_s"); time && !time->is_null()) {
    const auto seconds = time->number();
    if (!seconds) return seconds.error();
    plan->iteration_time_s = *seconds;
  }
  if (const auto time = fields.optional("maximum_clock_time_s"); time && !time->is_null()) {
    const auto seconds = time->number();
    if (!seconds) return seconds.error();
    plan->maximum_clock_time_s = *seconds;
  }
  if (const auto why = fields.optional("slower_because"); why && why->string()) {
    plan->slower_because = std::string(*why->string());
  }
  if (const auto reason = fields.optional("reason"))
    plan->reason = std::string(reason->string() ? *reason->string() : "");
  const formats::JsonReader clocks = fields.value("clocks");
  if (fields.error()) return *fields.error();
  Status read = clocks.for_each([&](const formats::JsonReader& pair) -> Status {
    PlannedClock planned;
    int place = 0;
    Status members = pair.for_each([&](const formats::JsonReader& part) -> Status {
      if (place++ == 0) {
        const auto name = part.string();
        if (!name) return name.error();
        const auto known = model::instruction_named(*name);
        if (!known) return part.error("an instruction's name");
        planned.instruction = *known;
        return Ok{};
      }
      const auto clock = part.integer();
      if (!clock) return clock.error();
      const bool have = facts.clocks_mhz.empty()
                            ? *clock >= 0
                            : *clock == 0 || std::ranges::find(facts.clocks_mhz, *clock) != facts.clocks_mhz.end();
      if (!have) return part.error("a clock that this rank has, in MHz, or 0");
      planned.clock_mhz = *clock;
      return Ok{};
    });
    if (!members) return members;
    if (place != 2) return pair.error("[instruction, MHz]");
    plan->clocks.push_back(planned);
    return Ok{};
  });
  if (!read) return read.error();
  if (const auto computations = fields.optional("computations")) {
    if (Status ids = read_computations(*computations, plan->clocks); !ids) return ids.error();
  }
  std::erase_if(plan->clocks, [](const PlannedClock& planned) { return model::is_constant_time(planned.instruction); });
  return plan;
}

}  // namespace

Result<std::string> read_registered_job(std::string_view body) {
  const auto document = formats::parse_json(body, "answer");
  if (!document) return document.error();
  formats::JsonFields fields(document->root());
  const std::string job(fields.string("job"));
  if (fields.error()) return *fields.error();
  if (job.empty()) return Error{ErrorCode::invalid_input, "answer: the job's id is empty"};
  return job;
}

std::int64_t read_registered_epoch(std::string_view body) {
  const auto document = formats::parse_json(body, "answer");
  if (!document) return 0;
  formats::JsonFields fields(document->root());
  const double epoch = fields.optional("epoch") ? fields.number("epoch") : 0;
  constexpr double most = 9007199254740992;  // 2^53
  return !fields.error() && epoch > 0 && epoch <= most ? static_cast<std::int64_t>(epoch) : 0;
}

Result<std::unique_ptr<ClockPlan>> read_plan_of_registration(std::string_view body, const RankFacts& facts) {
  const auto document = formats::parse_json(body, "answer");
  if (!document) return document.error();
  formats::JsonFields fields(document->root());
  const auto plan = fields.optional("plan");
  return plan ? plan_from(*plan, facts) : std::unique_ptr<ClockPlan>();
}

Result<std::unique_ptr<ClockPlan>> read_plan(std::string_view body, const RankFacts& facts) {
  const auto document = formats::parse_json(body, "answer");
  if (!document) return document.error();
  return plan_from(document->root(), facts);
}

std::string read_refusal(std::string_view body) {
  if (const auto document = formats::parse_json(body, "answer")) {
    formats::JsonFields fields(document->root());
    if (const auto detail = fields.optional("detail")) {
      if (const auto text = detail->string()) return std::string(*text);
    }
  }
  return valid_utf8(body.substr(0, 200));
}

}  // namespace perseus::client
