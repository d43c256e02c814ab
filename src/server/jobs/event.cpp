#include "server/jobs/event.h"

#include <array>
#include <utility>

#include "server/jobs/describe.h"
#include "server/jobs/pipeline_input.h"

namespace perseus::jobs {
namespace {

// In the order of EventBody.
constexpr std::array<std::string_view, kNumEventKinds> kKinds{
    "job_registered",
    "rank_registered",
    "rank_measured",
    "profile_known",
    "profiling_started",
    "window_handed_out",
    "result_reported",
    "profiling_failed",
    "characterization_started",
    "characterized",
    "characterization_failed",
    "straggler_notice",
    "straggler_in_force",
    "straggler_withdrawn",
    "policy_set",
    "policy_cleared",
    "plan_deployed",
    "iterations_counted",
    "job_seen",
    "job_finished",
    "job_expired",
    "plan_dropped",
    "energy_measured",
    "reports_kept",
    "refinement_ended",
    "job_revived",
    "profile_on_trial",
    "trial_ended",
    "saving_modeled",
    "power_granted",
    "version_held",
    "shape_seen",
    "shape_completed",
    "tier_set",
    "job_silent",
    "job_heard",
    "unknown",
};

}  // namespace

// ---- The members of each kind, as the log has them.

void describe(auto& f, MaybeConst<JobRegistered> auto& e) {
  f("name", e.name);
  f.always("degrees", e.degrees);
  f("profile_online", e.profile_online);
  f("plain_profiling", e.plain_profiling);
  f("shape", e.shape);
  f("facts", e.facts);
  f("detect_stragglers", e.detect_stragglers);
  f("profiling_slowdown_pct", e.profiling_slowdown_pct);
  f("profiling_worst_slowdown_pct", e.profiling_worst_slowdown_pct);
  f("switch_latency_s", e.switch_latency_s);
  f("labels", e.labels);
  describe(f, e.tier);
  f("tier_bounded", e.tier_bounded);
  f("by", e.by);
}
void describe(auto& f, MaybeConst<RankRegistered> auto& e) {
  f.always("rank", e.rank);
  f("dp_rank", e.dp_rank);
  f("pp_rank", e.pp_rank);
  f("tp_rank", e.tp_rank);
  f("clocks_mhz", e.clocks_mhz);
  f("accelerator", e.accelerator);
  f("host", e.host);
  f("transfer_latency_s", e.transfer_latency_s);
  f("switch_latency_s", e.switch_latency_s);
  f("instructions", e.instructions);
  f("epoch", e.epoch);
  f("process", e.process);
  f("control", e.control);
  f("control_reason", e.control_reason);
  f("gpu", e.gpu);
  f("keeps_budgets", e.keeps_budgets);
  f("paces", e.paces);
}
void describe(auto& f, MaybeConst<RankMeasured> auto& e) {
  f.always("rank", e.rank);
  f("switch_latency_s", e.switch_latency_s);
  f("blocking_power_w", e.blocking_power_w);
  f("instructions", e.instructions);
  f("clocks_mhz", e.clocks_mhz);
  f("control", e.control);
  f("control_reason", e.control_reason);
}
void describe(auto& f, MaybeConst<ProfileKnown> auto& e) {
  f.always("input", e.input);
  f("source", e.source);
  f("pipelines", e.pipelines);
  f("schedule", e.schedule);
  f("microbatches", e.microbatches);
  f("text", e.text);
  f("switch_latency_s", e.switch_latency_s);
  f("fixed_latency", e.fixed_latency);
  f("by", e.by);
  f("doubts", e.doubts);
}
void describe(auto& f, MaybeConst<ProfileOnTrial> auto& e) {
  f.always("profile", e.profile);
  f.always("learned", e.learned);
  f.always("learned_input", e.learned_input);
  f("learned_by", e.learned_by);
}
void describe(auto& f, MaybeConst<TrialEnded> auto& e) {
  f.always("agreed", e.agreed);
  f("text", e.text);
}
void describe(auto& f, MaybeConst<ProfilingStarted> auto& e) {
  f.always("pipelines", e.pipelines);
  f.always("clocks_mhz", e.clocks_mhz);
  f("keeps_clocks", e.keeps_clocks);
  f("before", e.before);
}
void describe(auto& f, MaybeConst<SavingModeled> auto& e) {
  f("gpu", e.gpu);
  f("saving_pct", e.saving_pct);
  f("saving_stddev_pct", e.saving_stddev_pct);
  f.always("text", e.text);
}
void describe(auto& f, MaybeConst<WindowHandedOut> auto& e) {
  f.always("version", e.version);
  f.always("number", e.number);
  f.always("iterations", e.iterations);
  f("warm_up", e.warm_up);
  f("confirming", e.confirming);
  f.always("clocks_mhz", e.clocks_mhz);
  f("overdue", e.overdue);
  f("uncertainty_pct", e.uncertainty_pct);
  f("text", e.text);
  f("from_iteration", e.from_iteration);
  f("rest", e.rest);
  f("slowdown_pct", e.slowdown_pct);
  f("highest", e.highest);
  f("microbatches", e.microbatches);
}
void describe(auto& f, MaybeConst<ResultReported> auto& e) {
  f.always("rank", e.rank);
  f.always("window", e.window);
  f("iteration_time_s", e.iteration_time_s);
  f("iteration_energy_j", e.iteration_energy_j);
  f("time_s", e.time_s);
  f("energy_j", e.energy_j);
  f("throttled", e.throttled);
  f("missed", e.missed);
  f("begin_s", e.begin_s);
  f("end_s", e.end_s);
}
void describe(auto& f, MaybeConst<ProfilingFailed> auto& e) { f.always("why", e.why); }
void describe(auto& f, MaybeConst<CharacterizationStarted> auto& e) { f.always("inputs", e.inputs); }
void describe(auto& f, MaybeConst<Characterized> auto& e) {
  f.always("input", e.input);
  f("points", e.points);
  f("t_min_s", e.t_min_s);
  f("t_star_s", e.t_star_s);
}
void describe(auto& f, MaybeConst<CharacterizationFailed, RefinementEnded> auto& e) {
  f.always("input", e.input);
  f.always("why", e.why);
}
void describe(auto& f, MaybeConst<StragglerNoticed> auto& e) {
  f.always("id", e.id);
  f.always("target", e.target);
  f("pipeline", e.pipeline);
  f.always("degree", e.degree);
  f.always("effective_s", e.effective_s);
  f("detected", e.detected);
  f("by", e.by);
}
void describe(auto& f, MaybeConst<StragglerTookEffect> auto& e) { f.always("id", e.id); }
void describe(auto& f, MaybeConst<StragglerWithdrawn> auto& e) {
  f.always("id", e.id);
  f("by", e.by);
}
void describe(auto& f, MaybeConst<PolicyCleared> auto& e) {
  f.always("policy", e.kind);
  f("by", e.by);
}
void describe(auto& f, MaybeConst<TierSet> auto& e) {
  describe(f, e.tier);
  f("by", e.by);
}
void describe(auto& f, MaybeConst<PlanDeployed::Choice> auto& e) {
  f("input", e.input);
  f.always("point", e.point);
}
void describe(auto& f, MaybeConst<PlanDeployed::OfShape> auto& e) {
  f.always("shape", e.shape);
  f.always("choices", e.choices);
  f.always("choice_of", e.choice_of);
}
void describe(auto& f, MaybeConst<ShapeSeen> auto& e) {
  f.always("rank", e.rank);
  f.always("microbatches", e.microbatches);
  f("prevails", e.prevails);
  f("varies", e.varies);
  f("action_table", e.action_table);
}
void describe(auto& f, MaybeConst<ShapeCompleted> auto& e) {
  f.always("microbatches", e.microbatches);
  f.always("of", e.of);
  f("input", e.input);
  f("why", e.why);
}
void describe(auto& f, MaybeConst<PlanDeployed> auto& e) {
  f.always("version", e.version);
  f("from_iteration", e.from_iteration);
  f.always("choices", e.choices);
  f.always("choice_of", e.choice_of);
  f("t_straggler_s", e.t_straggler_s);
  f("t_opt_s", e.t_opt_s);
  f("reason", e.reason);
  f("saving_pct", e.saving_pct);
  f("saving_stddev_pct", e.saving_stddev_pct);
  f("budget", e.budget);
  f("shape", e.shape);
  f("others", e.others);
}
void describe(auto& f, MaybeConst<PowerGranted> auto& e) {
  f("granted_w", e.granted_w);
  f("counted_w", e.counted_w);
  f("lease_s", e.lease_s);
  f("ceiling_mhz", e.ceiling_mhz);
  f("by", e.by);
  f("ahead", e.ahead);
  f("correction", e.correction);
  f("paced_to_rate", e.paced_to_rate);
}
void describe(auto& f, MaybeConst<VersionHeld> auto& e) {
  f.always("version", e.version);
  f("ranks", e.ranks);
}
void describe(auto& f, MaybeConst<IterationsCounted> auto& e) {
  f("iterations", e.iterations);
  f("saved_j", e.saved_j);
  f("all_max_energy_j", e.all_max_energy_j);
  f("last_iteration", e.last_iteration);
  f("measured", e.measured);
}
void describe(auto& f, MaybeConst<PlanDropped> auto& e) {
  f.always("rank", e.rank);
  f.always("version", e.version);
  f("reason", e.reason);
  f("measured_s", e.measured_s);
  f("promised_s", e.promised_s);
  f("shape", e.shape);
}
void describe(auto& f, MaybeConst<EnergyMeasured> auto& e) {
  f("version", e.version);
  f.always("iterations", e.iterations);
  f.always("energy_j", e.energy_j);
  f.always("time_s", e.time_s);
  f("shape", e.shape);
  f("least_s", e.least_s);
  f("waiting_w", e.waiting_w);
  f("stddev_j", e.stddev_j);
}
void describe(auto& f, MaybeConst<ReportsKept::Run> auto& e) {
  f.always("first", e.first);
  f("version", e.version);
  f("straggles", e.straggles);
  f("ranks", e.ranks);
  f.always("energies_j", e.energies_j);
  f("shape", e.shape);
}
void describe(auto& f, MaybeConst<ReportsKept> auto& e) {
  f.always("closed", e.closed);
  f.always("last_followed", e.last_followed);
  f("measure", e.measure);
  f("runs", e.runs);
}
void describe(auto&, MaybeConst<JobSeen, JobExpired, JobRevived> auto&) {}
void describe(auto& f, MaybeConst<JobSilent> auto& e) {
  f.always("since_s", e.since_s);
  f("ended", e.ended);
  f("ranks", e.ranks);
}
void describe(auto& f, MaybeConst<JobHeard> auto& e) { f("ranks", e.ranks); }
void describe(auto& f, MaybeConst<JobFinished> auto& e) { f("by", e.by); }
void describe(auto& f, MaybeConst<UnknownEvent> auto& e) { f("unknown_kind", e.kind); }
void describe(JsonWriter& f, MaybeConst<PolicySet> auto& e) {
  f.always("policy", members_of(e.policy));
  f("by", e.by);
}

std::string_view kind_name(std::size_t kind) { return kKinds[kind]; }

// ---- Writing and reading a whole event.

std::string format_event(const Event& event) {
  std::string text;
  JsonWriter out(text);
  out.always("kind", std::string(kind_of(event)));
  out.always("at_s", event.at_s);
  std::visit([&](const auto& body) { describe(out, body); }, event.body);
  out.end();
  return text;
}

namespace {

struct PolicySetMembers {
  PolicyMembers policy;
  std::string by;
};
void describe(auto& f, MaybeConst<PolicySetMembers> auto& e) {
  f.always("policy", e.policy);
  f("by", e.by);
}

/// Reads a body of the kind with that number from the members beside "kind" and "at_s".
template <std::size_t kind = 0>
Result<EventBody> read_body(std::size_t wanted, formats::JsonMembers& members, const formats::JsonReader& json) {
  if constexpr (kind == kNumEventKinds) {
    return json.error("a kind of event");
  } else {
    if (wanted != kind) return read_body<kind + 1>(wanted, members, json);
    std::variant_alternative_t<kind, EventBody> body{};
    if constexpr (std::is_same_v<decltype(body), PolicySet>) {
      PolicySetMembers set;
      describe(members, set);
      if (Status read = members.end(); !read) return read.error();
      const auto policy = policy_of(set.policy);
      if (!policy) return json.error("exactly one of power_cap, pinned, max_slowdown in policy");
      body.policy = *policy;
      body.by = std::move(set.by);
    } else {
      describe(members, body);
      if (Status read = members.end(); !read) return read.error();
    }
    return EventBody(std::move(body));
  }
}

}  // namespace

Result<Event> parse_event(std::string_view text, const std::string& name) {
  const auto document = formats::parse_json(text, name);
  if (!document) return document.error();
  const formats::JsonReader root = document->root();
  formats::JsonMembers members(root);
  std::string kind;
  Event event;
  members.always("kind", kind);
  members.always("at_s", event.at_s);
  std::size_t number = 0;
  while (number < kNumEventKinds && kKinds[number] != kind) ++number;
  auto body = read_body(number, members, root);
  if (!body) return body.error();
  event.body = *std::move(body);
  return event;
}

Event event_in_log(std::string_view text) {
  if (auto event = parse_event(text, "event")) return *std::move(event);
  Event event{0, UnknownEvent{}};
  const auto document = formats::parse_json(text, "event");
  if (!document) return event;
  formats::JsonMembers members(document->root());
  members("kind", std::get<UnknownEvent>(event.body).kind);
  members("at_s", event.at_s);
  return event;
}

std::string format_shape(const PipelineShape& shape) { return json_text(shape); }

}  // namespace perseus::jobs
