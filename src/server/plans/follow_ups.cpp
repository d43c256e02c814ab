#include "server/plans/follow_ups.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/jobs/event_text.h"
#include "server/live/job_view.h"
#include "server/policies/stragglers.h"
#include "server/savings/job_savings.h"

namespace perseus::plans {

namespace {

/// A server that starts on the data of one that was planning for a job, or profiling it, goes on after so long.
constexpr double kWorkAgain_s = 20;

constexpr double kMeasureAgain_s = 60;  // between attempts to begin
constexpr double kSeenShare = 0.125;    // of the idle time: how often the log records that a job is not idle

bool all_have_ended(const live::LiveJob& live) { return live.calls.ended() == live.job.spec.degrees.world_size(); }

/// After so long without a call a job, or a rank of it, is silent. A living rank waits for its plan, reports every 30
/// s, and calls every 5 s where nothing answers: sooner once all of them have ended.
double silence_s(const live::LiveJob& live) {
  const jobs::Job& job = live.job;
  constexpr double least_lease_s = 15, ended_s = 15, silent_s = 45;
  const double lease_s = std::max(least_lease_s, job.plan && job.plan->budget ? job.plan->budget->lease_s : 0);
  return lease_s + (all_have_ended(live) ? ended_s : silent_s);
}

}  // namespace

std::optional<jobs::EventBody> FollowUps::next(live::LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  if (!job.live()) return std::nullopt;
  live.last_seen_s = std::max(live.last_seen_s, live.calls.waiters.empty() ? live.calls.last_s() : now_s);
  if (auto silence = next_silence(live, now_s)) return silence;
  if (live.last_seen_s > job.active_s && live.last_seen_s >= seen_from(job)) return jobs::JobSeen{};
  if (now_s >= expiry_of(live)) return jobs::JobExpired{};
  if (const jobs::Notice* next = policies::next_pending(job); next != nullptr && next->effective_s <= now_s) {
    return jobs::StragglerTookEffect{next->id};
  }
  if (profiles::awaits_profiling(job)) {
    // This is known before the other ranks register.
    if (auto impossible = profiles::profiling_impossible(job)) return *impossible;
    if (job.ranks_registered < job.spec.degrees.world_size()) return std::nullopt;
    return profiles::profiling_start(job);
  }
  if (profiles::is_profiled(job)) {
    if (auto impossible = profiles::profiling_impossible(job)) return *impossible;
    if (!job.varies.empty()) return jobs::ProfilingFailed{jobs::text_of_varying(job.varies)};
    return std::nullopt;
  }
  if (profiles::may_measure_again(job, now_s) && now_s >= live.replan.measure_again_s) {
    auto start = profiles::profiling_start(job);
    if (std::holds_alternative<jobs::ProfilingStarted>(start)) return start;
    live.replan.measure_again_s = now_s + kMeasureAgain_s;
  }
  if (live.reports.uncounted_since_s && now_s >= *live.reports.uncounted_since_s + live::kCountInterval_s) {
    if (const auto counts = live::counts_since(live); !counts.empty()) return counts.front();
    live.reports.uncounted_since_s.reset();
  }
  if (live.settled) return std::nullopt;  // registering ranks cost nothing per pipeline
  jobs::CharacterizationStarted start;
  for (const std::string& key : policies::characterizations_needed(job)) {
    if (!job.characterizing.contains(key)) start.inputs.push_back(key);
  }
  if (!start.inputs.empty()) return start;
  auto deployment = next_deployment(live, now_s);
  live.settled = !deployment;
  return deployment;
}

std::optional<jobs::EventBody> FollowUps::next_silence(live::LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  const live::RankCalls& calls = live.calls;
  if (!job.silent) {
    const double from_s = silent_from(live, now_s);
    if (now_s < from_s) return next_silent_ranks(live, now_s);
    return jobs::JobSilent{from_s - silence_s(live), calls.ended(), {}};
  }
  if (!calls.waiters.empty() || calls.last_s() > job.silent->since_s) return jobs::JobHeard{};
  if (job.silent->ended == 0 && calls.ended() > 0) return jobs::JobSilent{job.silent->since_s, calls.ended(), {}};
  return std::nullopt;
}

/// Of a job that is heard: ranks that do not call any more, or call again.
std::optional<jobs::EventBody> FollowUps::next_silent_ranks(live::LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  live::RankCalls& calls = live.calls;
  if (!jobs::waits_for_plans(job)) {
    calls.next_look_s = calls.quiet_since_s = std::numeric_limits<double>::infinity();
  }
  if (now_s < calls.next_look_s && job.silent_ranks.empty()) return std::nullopt;
  const std::vector<bool> waiting = calls.waiting();
  const auto waits = [&](int rank) { return static_cast<std::size_t>(rank) < waiting.size() && waiting[rank]; };
  jobs::JobHeard heard;
  for (const auto& [rank, since_s] : job.silent_ranks) {
    if (waits(rank) || calls.last_s(rank).value_or(0) > since_s) heard.ranks.push_back(rank);
  }
  if (!heard.ranks.empty()) return heard;
  // If none calls, the job is silent soon.
  const bool others_call = !calls.waiters.empty() || calls.last_s() > now_s - live::RankCalls::kLook_s;
  if (now_s < calls.next_look_s || !others_call) return std::nullopt;
  calls.next_look_s = now_s + live::RankCalls::kLook_s;
  calls.quiet_since_s = std::numeric_limits<double>::infinity();
  jobs::JobSilent silent{now_s, 0, {}};
  for (int rank = 0; rank < static_cast<int>(job.ranks.size()); ++rank) {
    const jobs::RankSlot& slot = job.ranks[rank];
    if (!slot || waits(rank) || job.silent_ranks.contains(rank)) continue;
    const double last_s =
        std::max({calls.last_s(rank).value_or(0), job.joined_s, job.heard_s, slot->heard_s, opened_s_});
    calls.quiet_since_s = std::min(calls.quiet_since_s, last_s);
    if (now_s < last_s + silence_s(live)) continue;
    silent.ranks.push_back(rank);
    silent.since_s = std::min(silent.since_s, last_s);
  }
  return silent.ranks.empty() ? std::nullopt : std::optional<jobs::EventBody>(silent);
}

/// When the job counts as silent if nothing is heard until then.
double FollowUps::silent_from(const live::LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  const double heard_s = std::max({live.calls.last_s(), job.heard_s, opened_s_});
  if (!jobs::keeps_calling(job) && !all_have_ended(live)) return std::numeric_limits<double>::infinity();
  // What operators ask for says nothing of the ranks.
  return (live.calls.waiters.empty() ? std::max(heard_s, job.registered_s) : now_s) + silence_s(live);
}

std::optional<jobs::EventBody> FollowUps::next_deployment(live::LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  if (!jobs::next_state(job.state, jobs::kind_of_type<jobs::PlanDeployed>())) return std::nullopt;
  auto plan = policies::desired_deployment(job, live.frontiers.all(), options_.slowdown, now_s);
  if (!plan) return std::nullopt;
  const std::int64_t next_common =
      live.reports.next_common_iteration(live.job, live.frontiers.all(), now_s, options_.margin_iterations);
  const bool put_off = live.reports.has_put_off(job) && next_common < job.plan->from_iteration;
  if (!put_off && !policies::differs(*plan, job.plan)) return std::nullopt;
  plan->version = job.version + 1;
  const bool at_once = plan->budget && plan->budget->at_once;
  plan->from_iteration = at_once ? 0 : next_common;
  if (const auto cost = savings::cost_under(*plan, job, live.frontiers.all())) {
    plan->saving_pct = cost->saved_pct();
    plan->saving_stddev_pct = savings::saving_stddev_pct(*plan, job, live.frontiers.all());
  }
  return *std::move(plan);
}

std::optional<double> FollowUps::due_s(const live::LiveJob& live, double now_s) const {
  const jobs::Job& job = live.job;
  if (!job.live() || job.unknown_events > 0) return std::nullopt;
  double next = expiry_of(live);
  if (live.calls.waiters.empty()) {
    if (!job.silent) next = std::min(next, silent_from(live, now_s));
  } else {
    // A rank that does not wait may be silent, though not before the next look; and the log says that the job is seen.
    const double look_s = std::min(live.calls.next_look_s, now_s + live::RankCalls::kLook_s);
    next = std::min({next, std::max(live.calls.quiet_since_s + silence_s(live), look_s), seen_from(job)});
  }
  if (const jobs::Notice* notice = policies::next_pending(job)) next = std::min(next, notice->effective_s);
  if (const auto change = policies::next_policy_change(job.policies, now_s)) next = std::min(next, *change);
  constexpr double ever = std::numeric_limits<double>::infinity();
  if (profiles::may_measure_again(job, ever))
    next = std::min(next, std::max(job.measure_again_s, live.replan.measure_again_s));
  if (live.retry_s) next = std::min(next, *live.retry_s);
  if (live.reports.uncounted_since_s) next = std::min(next, *live.reports.uncounted_since_s + live::kCountInterval_s);
  if (profiles::is_profiled(job)) {
    const double over_s = job.window_s + profiles::window_limit_s(job, options_.profiling_window_s);
    if (!job.all_reported() && over_s > now_s) next = std::min(next, over_s);
    if (live.profiling && live.profiling->look_again_s > now_s) next = std::min(next, live.profiling->look_again_s);
  }
  if (profiles::awaits_latencies(job, now_s, options_.latency_wait_s))
    next = std::min(next, job.joined_s + options_.latency_wait_s);
  const bool at_work = !job.characterizing.empty() || profiles::is_profiled(job);
  if (at_work) next = std::min(next, now_s + kWorkAgain_s);
  return next;
}

/// When the log says again that the job is not idle.
double FollowUps::seen_from(const jobs::Job& job) const { return job.active_s + kSeenShare * options_.idle_expiry_s; }

double FollowUps::expiry_of(const live::LiveJob& live) const {
  // After a server start, ranks may take a while to reconnect, and the start time may be wrong.
  constexpr double patience_s = 3600;
  return std::max(std::max(live.job.active_s, live.last_seen_s) + options_.idle_expiry_s,
                  opened_s_ + std::min(patience_s, options_.idle_expiry_s));
}

}  // namespace perseus::plans
