// JSON member names of views of jobs and their events, for base/json_writer.h; docs/openapi.json documents them.
//
// Output:  members that are not known are left out.
// Threads: templates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/jobs/describe.h"
#include "server/jobs/event_text.h"
#include "server/jobs/view_json.h"

namespace perseus::jobs {

// Groups that JSON nests differently from the view.
struct RanksShown {
  int expected, registered, waiting;
};
struct PolicyInForce {
  const Policy& policy;
  const std::string& text;
};
struct SavingsShown {
  const std::optional<JobView::PerIteration>& per_iteration;
  const std::optional<JobView::TotalSavings>& total;
  const std::string& no_total;
  const EnergyFactors& factors;
  const std::optional<JobView::Measured>&measured, &measured_all_max;
  const std::string& none_because;
  const std::optional<JobView::PossibleSaving>& possible;
  const std::optional<JobView::Waits>& waits;
};
struct HostShown {
  const std::string& job;
  const std::string& job_name;
  const HostView& host;
};
struct JobViewAnswer {
  const JobView& view;
  const EnergyFactors& factors;
};
void describe(auto& f, const RanksShown& ranks) {
  f.always("expected", ranks.expected);
  f.always("registered", ranks.registered);
  f.always("waiting", ranks.waiting);
}
void describe(auto& f, const PolicyInForce& in_force) {
  f.always("kind", std::string(kind_of(in_force.policy)));
  f.always("text", in_force.text);
  describe(f, static_cast<const PolicyMembers&>(members_of(in_force.policy)));
}
void describe(auto& f, const JobView::PossibleSaving& possible) {
  f.always("saving_pct", possible.saving_pct);
  f("saving_stddev_pct", possible.stddev_pct);
  f("modeled", possible.modeled);
}
void describe(auto& f, const JobView::Waits& waits) {
  f.always("period_s", waits.period);
  f.always("wait_s", waits.wait);
  f.always("energy_j", waits.energy);
}
void describe(auto& f, const SavingsShown& savings) {
  f("per_iteration", savings.per_iteration);
  f("waits_not_counted", savings.waits);
  f("total", savings.total);
  f("no_total_because", savings.no_total);
  f("measured", savings.measured);
  f("measured_all_max", savings.measured_all_max);
  f("none_because", savings.none_because);
  f("possible", savings.possible);
  f("factors", savings.factors);
}

void describe(auto& f, const JobHeader& header) {
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
void describe(auto& f, const JobView::PlanInForce& plan) {
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
void describe(auto& f, const JobView::PipelineView& pipeline) {
  f.always("pipeline", pipeline.pipeline);
  f("straggler", pipeline.straggler);
  f("point", pipeline.point);
  f("points", pipeline.points);
  f("time_s", pipeline.time);
  f("energy_j", pipeline.energy);
  f("frontier", pipeline.frontier);
}
void describe(auto& f, const ProfilingCost& cost) {
  f.always("iterations", cost.iterations);
  f.always("time_s", cost.time);
  f.always("energy_j", cost.energy);
  f.always("mean_slowdown_pct", cost.mean_slowdown_pct);
  f.always("worst_slowdown_pct", cost.worst_slowdown_pct);
  f("earned_back_after_iterations", cost.earned_back_after);
}
void describe(auto& f, const JobView::Measured& measured) {
  f.always("energy_j", measured.energy);
  f.always("time_s", measured.time);
  f.always("iterations", measured.iterations);
}
void describe(auto& f, const JobView::Profiling& profiling) {
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
void describe(auto& f, const JobView::Shape& shape) {
  f.always("microbatches", shape.microbatches);
  f.always("planned", shape.planned);
  f("why", shape.why);
}
void describe(auto& f, const JobView::ProfileTrial& trial) {
  f.always("state", trial.state);
  f.always("learned_by", trial.learned_by);
  f("text", trial.text);
}
void describe(auto& f, const JobView::StragglerView& straggler) {
  f.always("id", straggler.id);
  f.always("target", text_of(straggler.target));
  f.always("pipeline", straggler.pipeline);
  f.always("degree", straggler.degree);
  f.always("state", std::string(straggler.in_force ? "in_force" : "pending"));
  f.always("at_s", straggler.at_s);
  f.always("origin", std::string(straggler.detected ? "detected" : "notice"));
}
void describe(auto& f, const JobView::PerIteration& costs) {
  f.always("energy_j", costs.energy);
  f.always("all_max_energy_j", costs.all_max_energy);
  f.always("time_s", costs.time);
  f.always("all_max_time_s", costs.all_max_time);
}
void describe(auto& f, const JobView::TotalSavings& total) {
  f.always("iterations", total.iterations);
  f.always("saved_j", total.saved);
  f.always("all_max_energy_j", total.all_max_energy);
  f.always("measured", total.measured);
  f.always("estimated_iterations", total.estimated_iterations);
  f.always("estimated_saved_j", total.estimated_saved);
}
void describe(auto& f, const JobView::SitePart& site) {
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
void describe(auto& f, const EnergyFactors& factors) {
  f("price_per_kwh", factors.price_per_kwh);
  f("currency", factors.currency);
  f("carbon_g_per_kwh", factors.carbon_g_per_kwh);
}
void describe(auto& f, const JobViewAnswer& answer) {
  const JobView& view = answer.view;
  describe(f, view.header);
  f("reason", view.reason);
  f("silent_since_s", view.silent_since_s);
  f.always("now_s", view.now_s);
  f.always("sequence", view.sequence);
  f("schedule", view.schedule);
  f("microbatches", view.microbatches);
  f("shapes", view.shapes);
  f.always("degrees", view.degrees);
  const int world_size = view.degrees.world_size();
  f.always("world_size", world_size);
  f.always("ranks", RanksShown{world_size, view.ranks_registered, view.ranks_waiting});
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
  std::vector<PolicyInForce> policies;
  for (std::size_t i = 0; i < view.policies.size(); ++i) policies.push_back({view.policies[i], view.policy_texts[i]});
  f.always("policies", policies);
  f("site", view.site);
  if (view.per_iteration || view.total || !view.no_total.empty() || view.measured_all_max || !view.no_savings.empty()) {
    f.always("savings", SavingsShown{view.per_iteration, view.total, view.no_total, answer.factors, view.measured,
                                     view.measured_all_max, view.no_savings, view.possible, view.waits});
  }
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
