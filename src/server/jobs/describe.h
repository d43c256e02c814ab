// JSON member names of what the server stores and answers, for base/json_writer.h and io/formats/described_json.h.
//
// Names, units and order here define the format of the event log and of the same objects in the API.
//
// Threads: templates.
#pragma once

#include <concepts>

#include "base/json_writer.h"
#include "io/formats/described_json.h"
#include "io/formats/transfer_latency_text.h"
#include "server/jobs/event.h"
#include "server/jobs/requests.h"

namespace perseus::jobs {

using formats::MaybeConst;
using formats::parse_json_as;
using perseus::json_text;

void describe(auto& f, MaybeConst<PipelineShape> auto& s) {
  f.always("schedule", s.schedule);
  f("action_table", s.action_table);
  f("microbatches", s.microbatches);
  f("chunks", s.chunks);
  f("blocking_power_w", s.blocking_power);
  f("transfer_latency_s", formats::TransferLatencyMember{s.transfer_latency});
  f("blocking_transfers", s.blocking_transfers);
  f("serial_transfers", s.serial_transfers);
  f("split_backward", s.split_backward);
  f("switch_latency_s", s.switch_latency);
  f("min_dwell_s", s.min_dwell);
}
void describe(auto& f, MaybeConst<ClockFigures> auto& s) {
  f("set_mhz", s.set_mhz);
  f("failed", s.failed);
  f("late", s.late);
  f("throttled_iterations", s.throttled_iterations);
}
void describe(auto& f, MaybeConst<Degrees> auto& s) {
  f.always("dp", s.dp);
  f.always("pp", s.pp);
  f.always("tp", s.tp);
}
void describe(auto& f, MaybeConst<StragglerTarget> auto& s) {
  f("accelerator", s.accelerator);
  f("rank", s.rank);
  f("pipeline", s.pipeline);
}
void describe(auto& f, MaybeConst<PowerCap> auto& s) { f.always("average_w", s.average); }
void describe(auto& f, MaybeConst<Pin> auto& s) {
  f("time_s", s.time);
  f("point", s.point);
}
void describe(auto& f, MaybeConst<MaxSlowdown::Sample> auto& s) {
  f.always("from_s", s.from_s);
  f.always("value", s.value);
}
void describe(auto& f, MaybeConst<MaxSlowdown> auto& s) {
  f.always("slowdown", s.slowdown);
  f("threshold", s.threshold);
  f("signal", s.signal);
  f("unit", s.unit);
}

void describe(auto& f, MaybeConst<LaterBudget> auto& s) {
  f.always("at_s", s.at_s);
  f.always("watts", s.watts);
  f.always("ceiling_mhz", s.ceiling_mhz);
  f("paced_iteration_s", s.paced_iteration_s);
}

void describe(auto& f, MaybeConst<PowerBudget> auto& s) {
  f.always("watts", s.watts);
  f.always("lease_s", s.lease_s);
  f.always("ceiling_mhz", s.ceiling_mhz);
  f("at_once", s.at_once);
  f("ahead", s.ahead);
  f("paced_iteration_s", s.paced_iteration_s);
}

void describe(auto& f, MaybeConst<Tier> auto& s) {
  f("domain", s.domain);
  f("least_rate", s.least_rate);
  f("priority", s.priority);
}
void describe(auto& f, MaybeConst<TierBody> auto& s) {
  describe(f, s.tier);
  f("reset", s.reset);
}

void describe(auto& f, MaybeConst<JobSummary> auto& s) {
  f("ranks", s.ranks);
  f("ranks_registered", s.ranks_registered);
  f("pipelines", s.pipelines);
  f("stragglers", s.stragglers);
  f("iteration_time_s", s.iteration_time);
  f("saved_pct", s.saved_pct);
  f("possible_saving_pct", s.possible_saving_pct);
  f("possible_saving_stddev_pct", s.possible_saving_stddev_pct);
  f("possible_saving_modeled", s.possible_saving_modeled);
  f("maximum_clock", s.maximum_clock);
  f("silent_since_s", s.silent_since_s);
  f("silent_ranks", s.silent_ranks);
  f("saved_j", s.saved);
  f("estimated_saved_j", s.estimated_saved);
  f("power_w", s.power);
  f("all_max_power_w", s.all_max_power);
  f("power_measured", s.power_measured);
  f("planned_power_w", s.planned_power);
  f("accelerator", s.accelerator);
  f("labels", s.labels);
}

/// A policy is an object with one member, its kind: {"power_cap":{"average_w":250000}}.
struct PolicyMembers {
  std::optional<PowerCap> power_cap;
  std::optional<Pin> pinned;
  std::optional<MaxSlowdown> max_slowdown;
};
void describe(auto& f, MaybeConst<PolicyMembers> auto& s) {
  f("power_cap", s.power_cap);
  f("pinned", s.pinned);
  f("max_slowdown", s.max_slowdown);
}
PolicyMembers members_of(const Policy& policy);
/// Not for one of its kinds, which would become a policy.
template <std::same_as<Policy> P>
void append_json_form(std::string& out, const P& policy) {
  append_json(out, members_of(policy));
}
Status read_json_form(const formats::JsonReader& json, Policy& policy);

void describe(auto& f, MaybeConst<LearnedProfile> auto& s) {
  f.always("input", s.input);
  f("team", s.team);
  f("model", s.model);
  f("job", s.job);
  f("learned_at_s", s.learned_at_s);
  f("confirmed", s.confirmed);
  f("doubted_by", s.doubted_by);
  f("doubted_because", s.doubted_because);
}

}  // namespace perseus::jobs
