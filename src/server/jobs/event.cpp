#include "server/jobs/event.h"

#include <algorithm>
#include <array>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>

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

// ---- The members of each kind. Their names are those in the log.

BOOST_DESCRIBE_STRUCT(JobRegistered, (),
                      (name, degrees, profile_online, plain_profiling, shape, facts, detect_stragglers,
                       profiling_slowdown_pct, profiling_worst_slowdown_pct, switch_latency_s, labels, tier,
                       tier_bounded, by))
BOOST_DESCRIBE_STRUCT(RankRegistered, (),
                      (rank, dp_rank, pp_rank, tp_rank, clocks_mhz, accelerator, host, transfer_latency_s,
                       switch_latency_s, instructions, epoch, process, control, control_reason, gpu, keeps_budgets,
                       paces))
BOOST_DESCRIBE_STRUCT(RankMeasured, (),
                      (rank, switch_latency_s, blocking_power_w, instructions, clocks_mhz, control, control_reason))
BOOST_DESCRIBE_STRUCT(ProfileKnown, (),
                      (input, source, pipelines, schedule, microbatches, text, switch_latency_s, fixed_latency, by,
                       doubts))
BOOST_DESCRIBE_STRUCT(ProfileOnTrial, (), (profile, learned, learned_input, learned_by))
BOOST_DESCRIBE_STRUCT(TrialEnded, (), (agreed, text))
BOOST_DESCRIBE_STRUCT(ProfilingStarted, (), (pipelines, clocks_mhz, keeps_clocks, before))
BOOST_DESCRIBE_STRUCT(SavingModeled, (), (gpu, saving_pct, saving_stddev_pct, text))
BOOST_DESCRIBE_STRUCT(WindowHandedOut, (),
                      (version, number, iterations, warm_up, confirming, clocks_mhz, overdue, uncertainty_pct, text,
                       from_iteration, rest, slowdown_pct, highest, microbatches))
BOOST_DESCRIBE_STRUCT(ResultReported, (),
                      (rank, window, iteration_time_s, iteration_energy_j, time_s, energy_j, throttled, missed, begin_s,
                       end_s))
BOOST_DESCRIBE_STRUCT(ProfilingFailed, (), (why))
BOOST_DESCRIBE_STRUCT(CharacterizationStarted, (), (inputs))
BOOST_DESCRIBE_STRUCT(Characterized, (), (input, points, t_min_s, t_star_s))
BOOST_DESCRIBE_STRUCT(CharacterizationFailed, (), (input, why))
BOOST_DESCRIBE_STRUCT(RefinementEnded, (), (input, why))
BOOST_DESCRIBE_STRUCT(StragglerNoticed, (), (id, target, pipeline, degree, effective_s, detected, by))
BOOST_DESCRIBE_STRUCT(StragglerTookEffect, (), (id))
BOOST_DESCRIBE_STRUCT(StragglerWithdrawn, (), (id, by))
BOOST_DESCRIBE_STRUCT(PolicySet, (), (policy, by))
BOOST_DESCRIBE_STRUCT(PolicyCleared, (), (policy, by))
BOOST_DESCRIBE_STRUCT(TierSet, (), (tier, by))
BOOST_DESCRIBE_STRUCT(PlanDeployed::Choice, (), (input, point))
BOOST_DESCRIBE_STRUCT(PlanDeployed::OfShape, (), (shape, choices, choice_of))
BOOST_DESCRIBE_STRUCT(ShapeSeen, (), (rank, microbatches, prevails, varies, action_table))
BOOST_DESCRIBE_STRUCT(ShapeCompleted, (), (microbatches, of, input, why))
BOOST_DESCRIBE_STRUCT(PlanDeployed, (),
                      (version, from_iteration, choices, choice_of, t_straggler_s, t_opt_s, reason, saving_pct,
                       saving_stddev_pct, budget, shape, others))
BOOST_DESCRIBE_STRUCT(PowerGranted, (),
                      (granted_w, counted_w, lease_s, ceiling_mhz, by, ahead, correction, paced_to_rate))
BOOST_DESCRIBE_STRUCT(VersionHeld, (), (version, ranks))
BOOST_DESCRIBE_STRUCT(IterationsCounted, (), (iterations, saved_j, all_max_energy_j, last_iteration, measured))
BOOST_DESCRIBE_STRUCT(PlanDropped, (), (rank, version, reason, measured_s, promised_s, shape))
BOOST_DESCRIBE_STRUCT(EnergyMeasured, (), (version, iterations, energy_j, time_s, shape, least_s, waiting_w, stddev_j))
BOOST_DESCRIBE_STRUCT(ReportsKept::Run, (), (first, version, straggles, ranks, energies_j, shape))
BOOST_DESCRIBE_STRUCT(ReportsKept, (), (closed, last_followed, measure, runs))
BOOST_DESCRIBE_STRUCT(JobSeen, (), ())
BOOST_DESCRIBE_STRUCT(JobExpired, (), ())
BOOST_DESCRIBE_STRUCT(JobRevived, (), ())
BOOST_DESCRIBE_STRUCT(JobSilent, (), (since_s, ended, ranks))
BOOST_DESCRIBE_STRUCT(JobHeard, (), (ranks))
BOOST_DESCRIBE_STRUCT(JobFinished, (), (by))

template <class S>
concept ListsMembers = boost::describe::has_describe_members<S>::value;
template <class S>
using MembersOf = boost::describe::describe_members<S, boost::describe::mod_public>;

/// Leaves out members at their default, except the rank that an event is about: rank 0 is one like the others.
template <ListsMembers S>
void describe(JsonWriter& f, const S& s) {
  [[maybe_unused]] static const S none{};  // of an event without members
  boost::mp11::mp_for_each<MembersOf<S>>([&](auto member) {
    const bool is_rank = std::string_view(member.name) == "rank";
    if (is_rank || !(s.*member.pointer == none.*member.pointer)) f.always(member.name, s.*member.pointer);
  });
}
template <ListsMembers S>
void describe(formats::JsonMembers& f, S& s) {
  boost::mp11::mp_for_each<MembersOf<S>>([&](auto member) { f(member.name, s.*member.pointer); });
}
void describe(auto& f, MaybeConst<UnknownEvent> auto& e) { f("unknown_kind", e.kind); }

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

Result<Event> parse_event(std::string_view text, const std::string& name) {
  const auto document = formats::parse_json(text, name);
  if (!document) return document.error();
  const formats::JsonReader root = document->root();
  formats::JsonMembers members(root);
  std::string kind;
  Event event;
  members.always("kind", kind);
  members.always("at_s", event.at_s);
  const auto known = std::ranges::find(kKinds, kind);
  if (known == kKinds.end()) return root.error("a kind of event");
  boost::mp11::mp_with_index<kNumEventKinds>(static_cast<std::size_t>(known - kKinds.begin()),
                                             [&](auto number) { describe(members, event.body.emplace<number>()); });
  if (Status read = members.end(); !read) return read.error();
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
