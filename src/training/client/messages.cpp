#include "training/client/messages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>
#include <utility>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "io/formats/described_json.h"
#include "io/formats/json_reader.h"

namespace perseus::client {
namespace {

constexpr int kDigits = 9;  // of measurements

double measured(double value) { return with_digits(value, kDigits); }

/// A list of one member of each iteration.
template <class Value>
auto each(const std::vector<MeasuredIteration>& iterations, Value MeasuredIteration::*member) {
  return JsonList{iterations, [member](const MeasuredIteration& iteration) {
                    if constexpr (std::is_same_v<Value, double>) {
                      return measured(iteration.*member);
                    } else {
                      return iteration.*member;
                    }
                  }};
}

void write_pipeline(JsonWriter& f, const ClientOptions& o) {
  f.always("schedule", o.schedule.empty() && o.action_table.empty() ? "1f1b" : o.schedule);
  f("action_table", o.action_table);
  if (o.microbatches > 0) f.always("microbatches", o.microbatches);
  if (o.chunks != 1) f.always("chunks", o.chunks);
  f("blocking_power_w", o.blocking_power_w);
  f("transfer_latency_s", o.transfer_latency_s);
}

/// Instruction -> per iteration -> per occurrence, in the order of the instructions.
auto breakdown(const std::vector<MeasuredIteration>& iterations, double MeasuredComputation::*value) {
  std::map<model::Instruction, std::vector<std::vector<double>>> values;
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    for (const MeasuredComputation& computation : iterations[i].computations) {
      auto& lists = values[computation.instruction];
      lists.resize(iterations.size());
      lists[i].push_back(measured(computation.*value));
    }
  }
  return JsonObject{[values = std::move(values)](JsonWriter& f) {
    for (const auto& [instruction, lists] : values) f.always(name_of(instruction), lists);
  }};
}

/// [microbatch, chunk] of each planned clock, in their order.
Status read_computations(const formats::JsonReader& computations, std::vector<PlannedClock>& clocks) {
  std::size_t next = 0;
  Status read = computations.for_each([&](const formats::JsonReader& pair) -> Status {
    if (next == clocks.size()) return computations.error("as many entries as clocks");
    const auto ids = pair.integers();
    if (!ids) return ids.error();
    if (ids->size() != 2 || std::ranges::min(*ids) < -1) return pair.error("[microbatch, chunk], each an index, or -1");
    clocks[next].microbatch = ids->front();
    clocks[next].chunk = ids->back();
    ++next;
    return Ok{};
  });
  if (!read) return read;
  return next == clocks.size() ? Status(Ok{}) : computations.error("as many entries as clocks");
}

}  // namespace

std::string new_job_body(const ClientOptions& o) {
  return json_object([&](JsonWriter& f) {
    f("name", o.job_name);
    f.always("degrees", JsonObject{[&](JsonWriter& degrees) {
               degrees.always("dp", o.dp_degree);
               degrees.always("pp", o.pp_degree);
               degrees.always("tp", o.tp_degree);
             }});
    f("profile", o.profile);
    const bool shaped = !o.schedule.empty() || !o.action_table.empty();
    if (shaped || (o.profile.empty() && o.microbatches > 0)) {
      f.always("pipeline", JsonObject{[&](JsonWriter& pipeline) { write_pipeline(pipeline, o); }});
      f("profile_online", o.profile.empty());
    }
    f("facts", o.facts);
    f("labels", o.labels);
    f("domain", o.domain);
    f("least_rate", o.least_rate);
    f("priority", o.priority);
  });
}

std::string rank_body(const ClientOptions& o, const RankFacts& facts) {
  return json_object([&](JsonWriter& f) {
    f.always("rank", o.rank);
    f.always("dp_rank", o.dp_rank);
    f.always("pp_rank", o.pp_rank);
    f.always("tp_rank", o.tp_rank);
    f("clocks_mhz", facts.clocks_mhz);
    f("accelerator", facts.accelerator);
    f("host", facts.host);
    f("transfer_latency_s", o.transfer_latency_s);
    f("switch_latency_s", facts.switch_latency_s);
    f("blocking_power_w", facts.blocking_power_w);
    f("control", facts.control);
    f("control_reason", facts.control_reason);
    f("gpu", facts.gpu);
    f("epoch", facts.epoch);
    f("replaces", facts.replaces);
    f.always("keeps_budgets", true);
    f("paces", o.paces);
    f("instructions", facts.instructions);
  });
}

namespace {

/// Of the computations of a profiling window.
void write_window(JsonWriter& f, const std::vector<MeasuredIteration>& iterations) {
  f.always("time_s", breakdown(iterations, &MeasuredComputation::time_s));
  const bool energies = std::ranges::all_of(iterations, [](const MeasuredIteration& i) {
    return std::ranges::all_of(i.computations, [](const auto& c) { return c.energy_j >= 0; });
  });
  if (energies) f.always("energy_j", breakdown(iterations, &MeasuredComputation::energy_j));
  f.always("throttled", each(iterations, &MeasuredIteration::throttled));
  f.always("begin_s", breakdown(iterations, &MeasuredComputation::begin_s));
  f.always("end_s", breakdown(iterations, &MeasuredComputation::end_s));
}

}  // namespace

template <class F>
void describe(F& f, const SeenClocks& clocks) {
  f("set_mhz", clocks.set_mhz);
  f("failed", clocks.failed);
  f("late", clocks.late);
  f("throttled_iterations", clocks.throttled_iterations);
}

std::string iterations_body(int rank, std::vector<MeasuredIteration> iterations, std::int64_t epoch,
                            const std::optional<SeenClocks>& clocks, int registered) {
  return json_object([&](JsonWriter& f) {
    f.always("rank", rank);
    f("epoch", epoch);
    f("clocks", clocks);
    const MeasuredIteration last = iterations.back();
    if (last.window >= 0) f.always("window", last.window);
    f.always("last_iteration", last.iteration);
    f.always("plan_version", iterations.front().plan_version);
    std::erase_if(iterations, [](const MeasuredIteration& i) { return !i.missed.empty(); });
    if (iterations.empty()) f("missed", last.missed);
    f.always("iteration_time_s", each(iterations, &MeasuredIteration::time_s));
    if (iterations.empty()) return;
    const auto unknown = std::ranges::count_if(iterations, [](const auto& i) { return i.energy_j < 0; });
    if (unknown == 0 || (last.window < 0 && unknown < std::ssize(iterations))) {
      for (MeasuredIteration& one : iterations) one.energy_j = std::max(one.energy_j, 0.0);  // 0: not known
      f.always("iteration_energy_j", each(iterations, &MeasuredIteration::energy_j));
    }
    if (last.window >= 0) return write_window(f, iterations);
    if (std::ranges::any_of(iterations,
                            [&](const auto& i) { return i.microbatches != 0 && i.microbatches != registered; })) {
      f.always("microbatches", each(iterations, &MeasuredIteration::microbatches));
    }
  });
}

std::string shape_body(const SeenShape& shape, std::int64_t epoch) {
  return json_object([&](JsonWriter& f) {
    f("epoch", epoch);
    f.always("microbatches", shape.microbatches);
    f("prevails", shape.prevails);
    f("varies", shape.varies);
    f("action_table", shape.action_table);
  });
}

std::string straggler_body(int rank, double degree) {
  return json_object([&](JsonWriter& f) {
    f.always("rank", rank);
    f.always("degree", degree);
  });
}

std::string plan_dropped_body(const DroppedPlan& dropped, std::int64_t epoch) {
  return json_object([&](JsonWriter& f) {
    f("epoch", epoch);
    f.always("version", dropped.version);
    f("microbatches", dropped.microbatches);
    f.always("reason", dropped.reason);
    f.always("measured_time_s", measured(dropped.measured_s));
    f.always("promised_time_s", measured(dropped.promised_s));
  });
}

namespace {

Status read_version(formats::JsonFields& fields, ClockPlan& plan) {
  const std::string_view kind = fields.string("kind");
  const double version = fields.number("version");
  const double from = fields.number("from_iteration");
  if (fields.error()) return *fields.error();
  if (kind == "plan") {
    plan.kind = ClockPlan::Kind::plan;
  } else if (kind == "profiling_window") {
    plan.kind = ClockPlan::Kind::profiling_window;
  } else if (kind != "maximum_clock") {
    return fields.value("kind").error("plan, profiling_window or maximum_clock");
  }
  constexpr double most = 9e15;
  if (!(version >= 1 && version < most)) return fields.value("version").error("1 or more");
  if (!(std::abs(from) < most)) return fields.value("from_iteration").error("an iteration's number");
  plan.version = static_cast<std::int64_t>(version);
  plan.from_iteration = static_cast<std::int64_t>(from);
  return Ok{};
}

/// Leaves `value` as it is where the member is missing.
template <class T>
Status read_optional(formats::JsonFields& fields, std::string_view key, T& value) {
  const auto member = fields.optional(key);
  return member ? formats::read_json(*member, value) : Status(Ok{});
}

Status read_window(formats::JsonFields& fields, ClockPlan& plan) {
  plan.window = fields.integer("window");
  std::string then;
  if (Status read = read_optional(fields, "iterations", plan.iterations); !read) return read;
  if (Status read = read_optional(fields, "then", then); !read) return read;
  plan.then_maximum = then == "maximum_clock" && plan.iterations > 0;
  return Ok{};
}

/// What the plan promises, and why it is this one.
Status read_promise(formats::JsonFields& fields, ClockPlan& plan) {
  for (const auto& [key, value] : {std::pair{"iteration_time_s", &plan.iteration_time_s},
                                   std::pair{"maximum_clock_time_s", &plan.maximum_clock_time_s}}) {
    const auto time = fields.optional(key);
    if (!time || time->is_null()) continue;
    if (Status read = formats::read_json(*time, *value); !read) return read;
  }
  for (const auto& [key, value] :
       {std::pair{"saving_pct", &plan.saving_pct}, std::pair{"saving_stddev_pct", &plan.saving_stddev_pct}}) {
    const auto saving = fields.optional(key);
    if (!saving) continue;
    const auto percent = saving->number();
    if (!percent) return percent.error();
    if (std::abs(*percent) <= 100) *value = *percent;  // only shown
  }
  for (const auto& [key, value] :
       {std::pair{"only_possible", &plan.only_possible}, std::pair{"modeled", &plan.modeled}}) {
    if (Status read = read_optional(fields, key, *value); !read) return read;
  }
  for (const auto& [key, value] :
       {std::pair{"slower_because", &plan.slower_because}, std::pair{"reason", &plan.reason}}) {
    const auto text = fields.optional(key);
    if (text && text->string()) *value = std::string(*text->string());
  }
  return Ok{};
}

constexpr double kLongest_s = 86400;
constexpr int kHighest_mhz = 65535;

/// The members that a budget and its falls have in common.
template <class Budget>
Status read_limits(formats::JsonFields& fields, Budget& budget) {
  budget.ceiling_mhz = static_cast<int>(fields.integer("ceiling_mhz"));
  if (fields.error()) return *fields.error();
  if (budget.ceiling_mhz < 1 || budget.ceiling_mhz > kHighest_mhz) {
    return fields.value("ceiling_mhz").error("1 to 65535");
  }
  const auto period = fields.optional("paced_iteration_s");
  if (!period) return Ok{};
  if (Status read = formats::read_json(*period, budget.paced_iteration_s); !read) return read;
  const bool fits = budget.paced_iteration_s > 0 && budget.paced_iteration_s <= kLongest_s;
  return fits ? Status(Ok{}) : period->error("above 0, to 86400");
}

Status read_budget(const formats::JsonReader& answer, ClockPlan& plan) {
  formats::JsonFields fields(answer);
  PlanBudget budget;
  budget.lease_s = fields.number("lease_s");
  if (Status read = read_limits(fields, budget); !read) return read;
  if (!(budget.lease_s > 0 && budget.lease_s <= kLongest_s)) return fields.value("lease_s").error("above 0, to 86400");
  if (Status read = read_optional(fields, "at_once", budget.at_once); !read) return read;
  if (const auto ahead = fields.optional("ahead")) {
    Status read = ahead->for_each([&](const formats::JsonReader& entry) -> Status {
      formats::JsonFields fall(entry);
      LaterCeiling later;
      later.at_s = fall.number("at_s");
      if (Status limits = read_limits(fall, later); !limits) return limits;
      budget.ahead.push_back(later);
      return Ok{};
    });
    if (!read) return read;
  }
  plan.budget = budget;
  return Ok{};
}

/// [instruction, MHz]
Result<PlannedClock> read_clock(const formats::JsonReader& pair, const RankFacts& facts) {
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
  if (!members) return members.error();
  if (place != 2) return pair.error("[instruction, MHz]");
  return planned;
}

Status read_clocks(formats::JsonFields& fields, const RankFacts& facts, std::vector<PlannedClock>& clocks) {
  const formats::JsonReader pairs = fields.value("clocks");
  if (fields.error()) return *fields.error();
  Status read = pairs.for_each([&](const formats::JsonReader& pair) -> Status {
    const auto planned = read_clock(pair, facts);
    if (!planned) return planned.error();
    clocks.push_back(*planned);
    return Ok{};
  });
  if (!read) return read;
  if (const auto computations = fields.optional("computations")) {
    if (Status ids = read_computations(*computations, clocks); !ids) return ids;
  }
  std::erase_if(clocks, [](const PlannedClock& planned) { return model::is_constant_time(planned.instruction); });
  return Ok{};
}

/// The clocks of steps with another number of microbatches.
Status read_shape(const formats::JsonReader& entry, const RankFacts& facts, ClockPlan& plan) {
  formats::JsonFields fields(entry);
  ShapeClocks shape;
  shape.microbatches = fields.integer("microbatches");
  shape.iteration_time_s = fields.number("iteration_time_s");
  shape.maximum_clock_time_s = fields.number("maximum_clock_time_s");
  if (Status read = read_clocks(fields, facts, shape.clocks); !read) return read;
  if (fields.error()) return *fields.error();
  if (shape.microbatches < 1) return fields.value("microbatches").error("1 or more");
  plan.others.push_back(std::move(shape));
  return Ok{};
}

Result<std::unique_ptr<ClockPlan>> plan_from(const formats::JsonReader& answer, const RankFacts& facts) {
  formats::JsonFields fields(answer);
  bool unchanged = false;
  if (Status read = read_optional(fields, "unchanged", unchanged); !read) return read.error();
  if (unchanged) return std::unique_ptr<ClockPlan>();
  auto plan = std::make_unique<ClockPlan>();
  if (Status read = read_version(fields, *plan); !read) return read.error();
  if (plan->kind == ClockPlan::Kind::profiling_window) {
    if (Status read = read_window(fields, *plan); !read) return read.error();
  }
  if (Status read = read_promise(fields, *plan); !read) return read.error();
  if (const auto budget = fields.optional("budget"); budget && !budget->is_null()) {
    if (Status read = read_budget(*budget, *plan); !read) return read.error();
  }
  if (Status read = read_clocks(fields, facts, plan->clocks); !read) return read.error();
  if (fields.optional("microbatches")) plan->microbatches = fields.integer("microbatches");
  if (const auto shapes = fields.optional("shapes")) {
    Status read = shapes->for_each([&](const formats::JsonReader& entry) { return read_shape(entry, facts, *plan); });
    if (!read) return read.error();
  }
  if (fields.error()) return *fields.error();
  // The highest clock is the GPU's, whatever clocks the server names. A budget bounds it.
  if (plan->kind == ClockPlan::Kind::maximum_clock && !plan->budget && !facts.clocks_mhz.empty()) {
    for (PlannedClock& planned : plan->clocks) {
      if (planned.clock_mhz != 0) planned.clock_mhz = facts.clocks_mhz.front();
    }
  }
  plan->keeps_clocks = plan->kind == ClockPlan::Kind::profiling_window && !plan->clocks.empty() &&
                       std::ranges::all_of(plan->clocks, [](const PlannedClock& one) { return one.clock_mhz == 0; });
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

std::optional<AnswerTime> read_answer_time(std::string_view body) {
  const auto document = formats::parse_json(body, "answer");
  if (!document) return std::nullopt;
  formats::JsonFields registration(document->root());
  const auto plan = registration.optional("plan");
  formats::JsonFields fields(plan && !plan->is_null() ? *plan : document->root());
  if (!fields.optional("sent_at_s")) return std::nullopt;
  const AnswerTime time{fields.number("sent_at_s"), fields.number("held_s")};
  return fields.error() ? std::nullopt : std::optional(time);
}

std::string read_refusal(std::string_view body, int status) {
  if (const auto document = formats::parse_json(body, "answer")) {
    formats::JsonFields fields(document->root());
    if (const auto detail = fields.optional("detail")) {
      if (const auto text = detail->string()) return std::string(*text);
    }
  }
  if (body.empty())
    return (status / 100 == 3 ? "a redirect" : "no reason") + (" (status " + std::to_string(status) + ")");
  return valid_utf8(body.substr(0, 200));
}

}  // namespace perseus::client
