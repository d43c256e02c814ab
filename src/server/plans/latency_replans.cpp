#include "server/plans/latency_replans.h"

#include <algorithm>
#include <utility>

#include "server/plans/stored_profiles.h"
#include "server/profiles/known_profile.h"

namespace perseus::plans {

std::optional<Seconds> LatencyReplans::latency_to_replan(const live::LiveJob& live, const std::string& input) {
  const auto latency = profiles::latency_to_plan_with(live.job, input);
  if (latency && live.replan.has_failed(input, *latency)) return std::nullopt;
  return latency;
}

void LatencyReplans::go_on(live::LiveJob& live) {
  const jobs::Job& job = live.job;
  if (live.replan.under_way || !job.live() || profiles::awaits_latencies(job, clock_.now_s(), options_.latency_wait_s))
    return;
  std::string input;
  for (const auto& [known, planned] : job.planned_with) {
    if (latency_to_replan(live, known)) input = known;
  }
  if (input.empty()) return;
  const Seconds latency = *latency_to_replan(live, input);
  live.replan.under_way = true;
  store_.read<std::optional<std::string>>(
      [input](store::Store& from) { return from.blob("input/" + input); },
      [this, id = job.id, input, latency](const Result<std::optional<std::string>>& text) {
        live::LiveJob* const now = jobs_.in_memory(id);
        if (now == nullptr) return;
        now->replan.under_way = text && *text;
        if (now->replan.under_way) return replan(id, input, latency, **text);
        if (text || text.error().code == ErrorCode::internal) {  // for example, damaged
          now->replan.failed(input, latency);
          return release_first_plan(*now);
        }
        now->retry_s = clock_.now_s() + live::kRetryAfter_s;
        jobs_.set_wake(*now, clock_.now_s());
      });
}

void LatencyReplans::replan(const std::string& id, const std::string& input, Seconds latency, const std::string& text) {
  const jobs::Job& job = jobs_.in_memory(id)->job;
  std::vector<int> pipelines;
  for (int p = 0; p < job.num_pipelines(); ++p) {
    if (job.input_of[p] == input) pipelines.push_back(p);
  }
  if (static_cast<int>(pipelines.size()) == job.num_pipelines()) pipelines.clear();
  const auto complete = [bytes = text, input, latency, limits = input_limits(options_, job.spec.degrees.pp),
                         source = job.profile_source, pipelines]() -> Result<profiles::KnownInput> {
    auto known = jobs::parse_input(bytes, "input/" + input);
    if (!known) return known.error();
    known->shape.switch_latency = latency;
    return profiles::known_input(known->profile_csv, known->shape, limits, source, pipelines);
  };
  work::run_off_thread(executor_, complete,
                       [this, id = job.id, input, latency](const Result<profiles::KnownInput>& known) {
                         replanned(id, input, latency, known);
                       });
}

void LatencyReplans::replanned(const std::string& id, const std::string& input, Seconds latency,
                               const Result<profiles::KnownInput>& known) {
  live::LiveJob* const now = jobs_.in_memory(id);
  if (now != nullptr) now->replan.under_way = false;
  if (!known) {
    if (now == nullptr) return;
    now->replan.failed(input, latency);
    return release_first_plan(*now);
  }
  const auto decide = [input, known = *known](const jobs::Job& current, double) -> Result<live::Decision> {
    live::Decision decision;
    const bool still = current.live() && std::ranges::find(current.input_of, input) != current.input_of.end() &&
                       profiles::latency_to_plan_with(current, input);
    if (!still) return decision;
    decision.events.emplace_back(known.event);
    std::get<jobs::ProfileKnown>(decision.events.back()).by = jobs::kByServer;
    decision.blobs.push_back(known.blob);
    return decision;
  };
  jobs_.execute(id, {decide, {}});
}

bool LatencyReplans::first_plan_waits(const live::LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  if (live.replan.plan_handed_out) return false;
  if (profiles::awaits_latencies(job, now_s, options_.latency_wait_s)) return true;
  return std::ranges::any_of(job.planned_with, [&](const auto& planned) {
    const auto& [input, with] = planned;
    const bool being_planned = !with.fixed && with.switch_latency_s && job.characterizing.contains(input) &&
                               !job.characterized.contains(jobs::quick_frontier_key(input));
    return being_planned || latency_to_replan(live, input);
  });
}

void LatencyReplans::release_first_plan(live::LiveJob& live) {
  if (!live.replan.plan_held_back || first_plan_waits(live, clock_.now_s())) return;
  live.replan.plan_held_back = false;
  jobs_.index().note(live.job.id);
  jobs_.shown(live);
}

}  // namespace perseus::plans
