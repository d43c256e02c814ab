#include "server/alerts/alert_watch.h"

#include <algorithm>
#include <set>

#include "server/jobs/event_text.h"
#include "server/jobs/job_shapes.h"
#include "server/live/job_view.h"
#include "server/savings/job_savings.h"

namespace perseus::alerts {
namespace {

constexpr double kRound_s = 15;           // between two rounds
constexpr double kBetweenParts_s = 0.05;  // of one round

void add_permission(const jobs::Job& job, AlertFacts& facts) {
  for (const int rank : job.uncontrolled) {
    const jobs::Rank& known = *job.ranks[rank];
    if (known.control == "advice") continue;  // by choice
    if (facts.without_permission++ == 0) facts.permission_reason = known.control_reason;
  }
}

void add_profiling(const jobs::Job& job, AlertFacts& facts) {
  if (job.state == jobs::JobState::failed && job.unprofiled) facts.profiling_failed = job.reason;
  if (job.state != jobs::JobState::profiling || job.windows.empty()) return;
  facts.window_since_s = job.window_s;
  facts.windows_overdue = job.windows_overdue;
}

void add_plan(const live::LiveJob& live, AlertFacts& facts) {
  const jobs::Job& job = live.job;
  const auto dropped =
      std::ranges::find_if(job.dropped, [&](const auto& one) { return jobs::is_in_use(job, one.first); });
  if (dropped != job.dropped.end()) facts.dropped = dropped->second;
  if (job.silent || !job.plan || !job.has_reports()) return;
  const auto cost = live::iteration_run(live);
  if (!cost) return;
  facts.planned = cost->time;
  if (const auto* const measured = job.plan_measured()) facts.measured = Seconds(measured->time_s);
  const auto policy = job.policies.find("power_cap");
  if (policy == job.policies.end()) return;
  const savings::JobPower power = savings::power_of(job, *cost);
  facts.power = power.plan;
  facts.power_measured = power.measured;
  if (const auto* cap = std::get_if<jobs::PowerCap>(&policy->second)) facts.cap = cap->average;
}

}  // namespace

AlertFacts alert_facts(const live::LiveJob& live) {
  AlertFacts facts;
  facts.job = live.job.id;
  facts.name = live.job.spec.name;
  add_permission(live.job, facts);
  add_profiling(live.job, facts);
  add_plan(live, facts);
  if (live.job.silent) {
    facts.silent_since_s = live.job.silent->since_s;
  } else if (!live.job.silent_ranks.empty()) {
    facts.silent_ranks = jobs::text_of_silent_ranks(live.job);
    facts.silent_since_s = live.job.silent_ranks.begin()->second;
  }
  return facts;
}

AlertFacts alert_facts(const power::SiteDomainView& domain) {
  AlertFacts facts;
  facts.job = jobs::job_of_domain(domain.name);
  facts.name = domain.name;
  facts.limit = domain.limit;
  if (domain.limit) facts.counted = std::max(domain.counted, domain.reported);
  facts.metered = domain.meter;
  facts.metered_limit = domain.metered;
  facts.meter_refused = domain.meter_refused;
  facts.missing = domain.missing;
  facts.limits_unread = domain.limits_unread;
  return facts;
}

AlertWatch::AlertWatch(const live::JobCache& jobs, power::SiteReadings& site, const Clock& clock, work::Due& due,
                       double after_s, AlertSink& sink)
    : jobs_(jobs), site_(site), clock_(clock), alarm_(due, work::Due::Turn::alerts, *this), alerts_(after_s, sink) {
  set_after(after_s);
}

void AlertWatch::set_after(double after_s) {
  alerts_.set_after(after_s);
  alarm_.set(after_s > 0 ? std::optional(alarm_.at().value_or(clock_.now_s())) : std::nullopt);
}

void AlertWatch::begin_round(double now_s) {
  std::set<std::string> seen;
  for (const auto& [id, live] : jobs_.live()) {
    if (!live->job.live()) continue;
    left_.push_back(id);
    seen.insert(id);
  }
  for (const std::string& job : alerts_.jobs_with_alerts()) {
    if (!seen.contains(job) && !job.starts_with(jobs::kDomainPrefix)) alerts_.job_over(job, now_s);
  }
}

void AlertWatch::look(const std::string& job, double now_s) {
  const auto found = jobs_.live().find(job);
  if (found == jobs_.live().end() || !found->second->job.live()) return alerts_.job_over(job, now_s);
  AlertFacts facts = alert_facts(*found->second);
  const auto held = held_.find(job);
  if (facts.silent_since_s && held != held_.end()) facts.held = held->second;
  alerts_.look(facts, now_s);
}

void AlertWatch::look_at_site(double now_s) {
  std::set<std::string> seen;
  held_.clear();
  if (const auto view = site_.allocated_now()) {
    for (const power::SiteJobView& job : view->jobs) {
      if (job.silent_since_s || job.silent_ranks > 0) held_.emplace(job.job, job.counted);
    }
    for (const power::SiteDomainView& domain : view->domains) {
      const AlertFacts facts = alert_facts(domain);
      seen.insert(facts.job);
      alerts_.look(facts, now_s);
    }
  }
  for (const std::string& job : alerts_.jobs_with_alerts()) {
    if (job.starts_with(jobs::kDomainPrefix) && !seen.contains(job)) alerts_.job_over(job, now_s);
  }
}

void AlertWatch::go_on(double now_s) {
  if (left_.empty()) {
    begin_round(now_s);
    look_at_site(now_s);
  }
  for (std::size_t looked = 0; looked < kJobsAtOnce && !left_.empty(); ++looked) {
    look(left_.front(), now_s);
    left_.pop_front();
  }
  alarm_.set(now_s + (left_.empty() ? std::min(kRound_s, alerts_.after_s() / 2) : kBetweenParts_s));
}

}  // namespace perseus::alerts
