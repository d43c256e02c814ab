// JSON member names of views of jobs and their events, for base/json_writer.h; docs/openapi.json documents them.
//
// Output:  members that are not known are left out.
// Threads: templates.
#pragma once

#include <optional>
#include <string>

#include "server/jobs/describe.h"
#include "server/jobs/event_text.h"
#include "server/jobs/view_json.h"

namespace perseus::jobs {

// Groups that JSON nests differently from the view, which is const where it is written.
template <class View>
struct RanksShown {
  View& view;
};
template <class View, class Factors>
struct SavingsShown {
  View& view;
  Factors& factors;
};
struct HostShown {
  const std::string& job;
  const std::string& job_name;
  const HostView& host;
};
template <class View>
void describe(auto& f, const RanksShown<View>& ranks) {
  int expected = ranks.view.degrees.world_size();
  f.always("expected", expected);
  f.always("registered", ranks.view.ranks_registered);
  f.always("waiting", ranks.view.ranks_waiting);
}
void describe(auto& f, MaybeConst<PolicyInForce> auto& in_force) {
  std::string kind(kind_of(in_force.policy));
  PolicyMembers members = members_of(in_force.policy);
  f.always("kind", kind);
  f.always("text", in_force.text);
  describe(f, members);
}
void describe(auto& f, MaybeConst<JobView::PossibleSaving> auto& possible) {
  f.always("saving_pct", possible.saving_pct);
  f("saving_stddev_pct", possible.stddev_pct);
  f("modeled", possible.modeled);
}
void describe(auto& f, MaybeConst<JobView::Waits> auto& waits) {
  f.always("period_s", waits.period);
  f.always("wait_s", waits.wait);
  f.always("energy_j", waits.energy);
}
template <class View, class Factors>
void describe(auto& f, const SavingsShown<View, Factors>& savings) {
  f("per_iteration", savings.view.per_iteration);
  f("waits_not_counted", savings.view.waits);
  f("total", savings.view.total);
  f("no_total_because", savings.view.no_total);
  f("measured", savings.view.measured);
  f("measured_all_max", savings.view.measured_all_max);
  f("none_because", savings.view.no_savings);
  f("possible", savings.view.possible);
  f("factors", savings.factors);
}

void describe(auto& f, MaybeConst<JobHeader> auto& header) {
  f.always("id", header.job);
  f("name", header.name);
  f.always("state", header.state);
  f.always("created_at_s", header.created_s);
  f.always("updated_at_s", header.updated_s);
}
void describe(auto& f, const JobListEntry& entry) {
  describe(f, entry.header);
  describe(f, entry.summary);
}
void describe(auto& f, MaybeConst<JobView::PlanInForce> auto& plan) {
  f.always("version", plan.version);
  f.always("from_iteration", plan.from_iteration);
  f.always("deployed_at_s", plan.deployed_s);
  f("t_max_s", plan.t_max);
  f("t_min_s", plan.t_min);
  f("t_star_s", plan.t_star);
  f("t_straggler_s", plan.t_straggler);
  f("t_opt_s", plan.t_opt);
  f("reason", plan.reason);
}
void describe(auto& f, MaybeConst<JobView::PipelineView> auto& pipeline) {
  f.always("pipeline", pipeline.pipeline);
  f("straggler", pipeline.straggler);
  f("point", pipeline.point);
  f("points", pipeline.points);
  f("time_s", pipeline.time);
  f("energy_j", pipeline.energy);
  f("frontier", pipeline.frontier);
}
void describe(auto& f, MaybeConst<ProfilingCost> auto& cost) {
  f.always("iterations", cost.iterations);
  f.always("time_s", cost.time);
  f.always("energy_j", cost.energy);
  f.always("mean_slowdown_pct", cost.mean_slowdown_pct);
  f.always("worst_slowdown_pct", cost.worst_slowdown_pct);
  f("earned_back_after_iterations", cost.earned_back_after);
}
void describe(auto& f, MaybeConst<JobView::Measured> auto& measured) {
  f.always("energy_j", measured.energy);
  f.always("time_s", measured.time);
  f.always("iterations", measured.iterations);
}
void describe(auto& f, MaybeConst<JobView::Profiling> auto& profiling) {
  f("over", profiling.over);
  f.always("windows", profiling.windows);
  f.always("iterations", profiling.iterations);
  f("uncertainty_pct", profiling.uncertainty_pct);
  f("text", profiling.text);
  f("waiting_for", profiling.waiting_for);
  f("rejected", profiling.rejected);
  f("rejections", profiling.rejections);
  f("cost", profiling.cost);
}
void describe(auto& f, MaybeConst<JobView::Shape> auto& shape) {
  f.always("microbatches", shape.microbatches);
  f.always("planned", shape.planned);
  f("why", shape.why);
}
void describe(auto& f, MaybeConst<JobView::ProfileTrial> auto& trial) {
  f.always("state", trial.state);
  f.always("learned_by", trial.learned_by);
  f("text", trial.text);
}
template <MaybeConst<Notice> S>
void describe(auto& f, S& notice) {
  std::string target = text_of(notice.target), state = notice.in_force ? "in_force" : "pending";
  std::string origin = notice.detected ? "detected" : "notice";
  f.always("id", notice.id);
  f.always("target", target);
  f.always("pipeline", notice.pipeline);
  f.always("degree", notice.degree);
  f.always("state", state);
  f.always("at_s", notice.effective_s);
  f.always("origin", origin);
  if constexpr (!std::is_const_v<S>) notice.in_force = state == "in_force";
}
void describe(auto& f, MaybeConst<JobView::PerIteration> auto& costs) {
  f.always("energy_j", costs.energy);
  f.always("all_max_energy_j", costs.all_max_energy);
  f.always("time_s", costs.time);
  f.always("all_max_time_s", costs.all_max_time);
}
void describe(auto& f, MaybeConst<JobView::TotalSavings> auto& total) {
  f.always("iterations", total.iterations);
  f.always("saved_j", total.saved);
  f.always("all_max_energy_j", total.all_max_energy);
  f.always("measured", total.measured);
  f.always("estimated_iterations", total.estimated_iterations);
  f.always("estimated_saved_j", total.estimated_saved);
}
void describe(auto& f, MaybeConst<JobView::SitePart> auto& site) {
  f.always("domain", site.domain);
  f.always("least_rate", site.least_rate);
  f.always("priority", site.priority);
  f.always("state", site.state);
  f("reason", site.reason);
  f("granted_w", site.granted);
  f("ceiling_mhz", site.ceiling_mhz);
  f.always("counted_w", site.counted);
  f("planned_w", site.planned);
  f("baseline_w", site.baseline);
  f("rate", site.rate);
  f("rate_lost", site.rate_lost);
}
void describe(auto& f, MaybeConst<EnergyFactors> auto& factors) {
  f("price_per_kwh", factors.price_per_kwh);
  f("currency", factors.currency);
  f("carbon_g_per_kwh", factors.carbon_g_per_kwh);
}
/// A job as the API answers with it.
template <MaybeConst<JobView> View, MaybeConst<EnergyFactors> Factors>
void describe_job(auto& f, View& view, Factors& factors) {
  describe(f, view.header);
  f("reason", view.reason);
  f("silent_since_s", view.silent_since_s);
  f.always("now_s", view.now_s);
  f.always("sequence", view.sequence);
  f("schedule", view.schedule);
  f("microbatches", view.microbatches);
  f("shapes", view.shapes);
  f.always("degrees", view.degrees);
  int world_size = view.degrees.world_size();
  RanksShown<View> ranks{view};
  f.always("world_size", world_size);
  f.always("ranks", ranks);
  f("facts", view.facts);
  f("labels", view.labels);
  f("detect_stragglers", view.detect_stragglers);
  f("profiling", view.profiling);
  f("profile_trial", view.profile_trial);
  f("profile_doubts", view.profile_doubts);
  f("plan", view.plan);
  f("plans_dropped", view.dropped);
  f.always("pipelines", view.pipelines);
  f.always("stragglers", view.stragglers);
  f.always("policies", view.policies);
  f("site", view.site);
  const bool has_savings =
      view.per_iteration || view.total || !view.no_total.empty() || view.measured_all_max || !view.no_savings.empty();
  SavingsShown<View, Factors> savings{view, factors};
  if (has_savings || !std::is_const_v<View>) f("savings", savings);
}
/// A member of an optional struct.
template <class Struct, class Value>
std::optional<Value> member_of(const std::optional<Struct>& of, Value Struct::*member) {
  return of ? std::optional<Value>((*of).*member) : std::nullopt;
}
void describe_clocks(auto& f, const std::optional<ClockSpan>& wanted, const std::optional<ClockFigures>& counts) {
  f("wanted_least_mhz", member_of(wanted, &ClockSpan::least_mhz));
  f("wanted_most_mhz", member_of(wanted, &ClockSpan::most_mhz));
  f("clocks_failed", member_of(counts, &ClockFigures::failed));
  f("clocks_late", member_of(counts, &ClockFigures::late));
  f("throttled_iterations", member_of(counts, &ClockFigures::throttled_iterations));
}
void describe(auto& f, const RankView& rank) {
  f.always("rank", rank.rank);
  f.always("dp_rank", rank.dp_rank);
  f.always("pp_rank", rank.pp_rank);
  f.always("tp_rank", rank.tp_rank);
  f("host", rank.host);
  f("accelerator", rank.accelerator);
  f("control", rank.control);
  f("control_reason", rank.control_reason);
  f("restarts", rank.restarts);
  f("last_heard_s", rank.last_heard_s);
  f("waiting", rank.waiting);
  f("set_mhz", member_of(rank.clocks, &ClockFigures::set_mhz));
  describe_clocks(f, rank.wanted, rank.clocks);
  f("clocks_at_s", rank.clocks_at_s);
}
void describe(auto& f, const HostShown& shown) {
  const HostView& host = shown.host;
  f("host", host.host);
  f.always("job", shown.job);
  f("job_name", shown.job_name);
  f.always("ranks", host.ranks);
  f("without_control", host.without_control);
  f("control_reason", host.control_reason);
  f("set_least_mhz", member_of(host.set, &ClockSpan::least_mhz));
  f("set_most_mhz", member_of(host.set, &ClockSpan::most_mhz));
  describe_clocks(f, host.wanted, host.clocks);
  f("reporting", host.reporting);
  f("first_heard_s", host.first_heard_s);
  f("last_heard_s", host.last_heard_s);
  f("silent", host.silent);
}
void describe(auto& f, const RankPage& page) {
  f.always("ranks", page.ranks);
  f("next", page.next);
}
void describe(auto& f, const JobEvent& event) {
  f.always("job", event.job);
  f("name", event.name);
  f.always("sequence", event.sequence);
  f.always("kind", event.kind);
  f.always("at_s", event.at_s);
  f.always("text", event.text);
  f("by", event.by);
}

}  // namespace perseus::jobs
