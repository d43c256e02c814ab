#include "server/power/site_power.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/power/site_guard.h"

namespace perseus::power {
namespace {

constexpr const char* kBy = "site";

bool has_grant(const jobs::Job& job) { return job.grant && job.grant->granted_w; }

/// What ranks have; infinite: no grant, or what memory has.
double shown_grant_w(const live::LiveJob& live) {
  const jobs::Job* const shown = live.shown.to_clients();
  constexpr double any_w = std::numeric_limits<double>::infinity();
  return shown != nullptr && has_grant(*shown) ? *shown->grant->granted_w : any_w;
}

}  // namespace

SitePower::SitePower(const plans::PlanningOptions& options, work::StoreAccess& store, live::JobCache& jobs,
                     const Clock& clock, work::Due& due, work::Executor& executor, LimitListener& listener,
                     SiteHistory& history)
    : jobs_(jobs),
      clock_(clock),
      alarm_(due, work::Due::Turn::site, *this),
      executor_(executor),
      documents_(store, *this),
      limit_changes_(store, clock, listener),
      history_(history),
      meters_(store, clock),
      reservations_(options, store),
      powered_jobs_(options, jobs),
      opened_s_(clock.now_s()) {}

void SitePower::document_applied() {
  powered_jobs_.forget();
  last_ = {};
  ahead_.clear();
  next_ahead_s_ = 0;
  ++runs_;
  dividing_ = false;
  current() != nullptr ? changed() : release_all();
}

// ---- Time

void SitePower::noticed(const live::LiveJob& live) {
  if (current() != nullptr) return changed();
  const bool granted = live.job.live() && live.job.grant && live.job.grant->granted_w;
  if (granted) release_all();  // the site was cleared, and this job still has a grant
}

void SitePower::changed() {
  if (current() != nullptr) alarm_.set(clock_.now_s());
}

void SitePower::go_on(double now_s) {
  if (current() == nullptr) return;
  alarm_.set(now_s + kTick_s);
  powered_jobs_.forget_removed();
  if (now_s >= next_correction_s_) correct_by_meters(now_s);
  allocate(now_s);
  if (!history_.wants_reading(now_s)) return;
  if (const auto view = allocated_now()) history_.take(*view, now_s);
}

void SitePower::correct_by_meters(double now_s) {
  next_correction_s_ = now_s + kCorrection_s;
  const SitePowerView view = view_now();
  if (view.unread_jobs > 0) return;
  const auto& domains = current()->site.domains;
  std::vector<double> settled_s(domains.size());
  for (const SiteJobView& job : view.jobs) {
    const live::LiveJob* const live = jobs_.in_memory(job.job);
    const bool moves = job.granted && job.counted > *job.granted * (1 + 1e-9);
    const double since_s = live == nullptr || moves ? now_s : live->job.granted_s + kSettled_s;
    for (int d = job.domain; d >= 0; d = domains[d].parent) settled_s[d] = std::max(settled_s[d], since_s);
  }
  for (std::size_t d = 0; d < domains.size(); ++d) {
    if (!view.domains[d].metered) continue;
    meters_.correct(domains[d].name, view.domains[d].metered_planned, settled_s[d], now_s);
  }
}

// ---- Granting

std::optional<FoundJobs> SitePower::find_jobs(double now_s, const std::vector<jobs::Reservation>& reservations) {
  FoundJobs found =
      powered_jobs_.find(*current(), now_s, now_s + kPlanned_s, meters_.factors(*current(), now_s), reservations);
  // A restarted server reads its jobs first. One that cannot be read stops no fall of others for long.
  if (found.reading && now_s < opened_s_ + kReading_s) return std::nullopt;
  return found;
}

void SitePower::allocate(double now_s) {
  if (dividing_) return;
  auto found = find_jobs(now_s, reservations_.at(now_s));
  if (!found) return;
  reservations_.end_over(found->used, found->moved, now_s);
  dividing_ = true;
  const std::uint64_t run = ++runs_;
  std::vector<LaterLimits> falls;
  const bool looks_ahead = now_s >= next_ahead_s_;
  if (looks_ahead) {
    next_ahead_s_ = now_s + kAhead_s;
    falls = falls_ahead(*current(), now_s + kPlanned_s, found->accelerators, meters_.factors(*current(), now_s));
  }
  work::run_off_thread(
      executor_,
      [site = std::move(found->site), falls = std::move(falls), looks_ahead] {
        Divided divided{site, shares_of(site), falls, std::nullopt};
        if (looks_ahead) divided.ahead = budgets_ahead(site, falls);
        return divided;
      },
      [this, run](Divided result) { divided(run, std::move(result)); });
}

void SitePower::divided(std::uint64_t run, Divided result) {
  if (run != runs_) return;
  dividing_ = false;
  const double now_s = clock_.now_s();
  if (current() == nullptr) return;
  // What counts may have changed meanwhile.
  auto now = find_jobs(now_s, reservations_.at(now_s));
  if (!now) return;
  const std::vector<PoweredJob>& jobs = now->site.jobs;
  std::map<std::string, Watts> wanted;
  if (result.ahead) {
    ahead_.clear();
    falls_ = std::move(result.falls);
  }
  for (std::size_t j = 0; j < result.site.jobs.size(); ++j) {
    const std::string& id = result.site.jobs[j].id;
    // A job that had no frontier yet had no share: its power as a fixed job is no grant.
    if (result.site.jobs[j].choices) wanted.emplace(id, result.shares.wanted[j]);
    if (result.ahead && result.site.jobs[j].choices) ahead_.emplace(id, std::move((*result.ahead)[j]));
  }
  std::vector<site::GrantedPower> powers;
  for (const PoweredJob& job : jobs) {
    const live::LiveJob* const live = jobs_.in_memory(job.id);
    const auto share = wanted.find(job.id);
    site::GrantedPower& power = powers.emplace_back();
    power = {job.domain, job.counted, job.granted, job.granted, true};
    if (share != wanted.end() && job.choices) power.wanted = share->second;
    const bool dwelt = !job.has_grant || now_s >= live->job.granted_s + current()->dwell.value();
    // One that cannot be heard goes on under the ceiling of its last grant.
    const bool is_silent = live != nullptr && live->job.silent;
    power.may_rise = dwelt && !is_silent && !now->lacks_jobs;
  }
  const std::vector<Watts> next = next_grants(now->site, powers);
  last_ = std::move(result.shares);
  const double planned_s = now_s + kPlanned_s;
  falls_on_ =
      falls_on(falls_, planned_s,
               limits_between(*current(), planned_s, planned_s, now->accelerators, meters_.factors(*current(), now_s)));
  for (std::size_t j = 0; j < next.size(); ++j) {
    if (!jobs[j].choices) continue;
    // Falls that were none below the former grant, or were looked for without this job.
    if (next[j] > jobs[j].granted || !ahead_.contains(jobs[j].id)) next_ahead_s_ = 0;
    grant(jobs[j], next[j], now_s);
  }
}

void SitePower::grant(const PoweredJob& job, Watts watts, double now_s) {
  std::vector<jobs::LaterBudget> ahead;
  if (const auto known = ahead_.find(job.id); known != ahead_.end()) {
    ahead = falls_from(now_s + kPlanned_s, falls_on_, known->second);
  }
  const bool limited = watts < job.all_max() || !ahead.empty();
  jobs::PowerGranted granted;
  granted.correction = job.correction;
  const live::LiveJob* const live = jobs_.in_memory(job.id);
  if (!limited && !job.has_grant) {
    // A job that was released keeps its correction, or the limit would seem to bind it again.
    if (live == nullptr || !live->job.grant || live->job.grant->correction == job.correction) return;
  }
  if (limited) {
    granted.granted_w = planned_power(job, watts).value();
    granted.lease_s = current()->lease.value();
    // At maximum clock the job draws all_max() in the mean: that grant needs no lower ceiling.
    const Watts most = watts < job.all_max() ? Watts(*granted.granted_w) : model::kNoLimit;
    granted.ceiling_mhz = policies::ceiling_within(*job.choices, most);
    granted.ahead = std::move(ahead);
    if (policies::is_paced(*job.choices, Watts(*granted.granted_w))) granted.paced_to_rate = job.choices->paced_to_rate;
  }
  granted.counted_w = (job.counted / job.correction).value();
  granted.by = kBy;
  const bool stays = watts == job.granted;
  // Ranks learn of more watts once they are stored: until then, nothing counts them. The next division comes then.
  const bool rises = watts > job.granted || !limited;
  if (rises && live != nullptr && !live->is_durable()) return;
  // Less than a rise that the store may refuse can be more than ranks have.
  const bool waits = rises || (live != nullptr && limited && *granted.granted_w > shown_grant_w(*live));
  jobs_.execute(job.id, {[granted, stays](const jobs::Job& now, double) -> Result<live::Decision> {
                           live::Decision decision;
                           const auto& last = now.grant;
                           const bool never = !last && !granted.granted_w;
                           if (!now.live() || never) return decision;
                           jobs::PowerGranted next = granted;
                           if (stays && last && last->granted_w && next.granted_w) {
                             // The plan stays, and with it what it was followed by.
                             next.granted_w = last->granted_w;
                             next.counted_w = last->counted_w;
                           }
                           if (last && still_holds(last->ahead, next.ahead)) next.ahead = last->ahead;
                           const bool same = last && last->granted_w == next.granted_w &&
                                             last->ceiling_mhz == next.ceiling_mhz && last->lease_s == next.lease_s &&
                                             last->ahead == next.ahead && last->correction == next.correction &&
                                             last->paced_to_rate == next.paced_to_rate;
                           if (!same) decision.events.emplace_back(next);
                           return decision;
                         },
                         {},
                         waits});
}

/// There is no site any more: its limits do not apply.
void SitePower::release_all() {
  for (const auto& [id, live] : jobs_.live()) {
    if (!live->job.live() || !has_grant(live->job)) continue;
    jobs_.execute(id, {[](const jobs::Job& now, double) -> Result<live::Decision> {
                         live::Decision decision;
                         if (now.live() && has_grant(now))
                           decision.events.emplace_back(jobs::PowerGranted{{}, 0, 0, 0, kBy, {}, 1});
                         return decision;
                       },
                       {}});
  }
}

void SitePower::take_readings(std::vector<jobs::MeterReading> readings, work::Done<Ok> done) {
  if (current() == nullptr) return done(no_site());
  std::vector<Watts> most;
  const SitePowerView view = view_now();
  for (const SiteDomainView& domain : view.domains) {
    most.push_back(view.unread_jobs > 0 ? model::kNoLimit : domain.most_metered);
  }
  meters_.take(*current(), most, std::move(readings), std::move(done));
}

Result<SitePowerView> SitePower::view() {
  return current() != nullptr ? Result<SitePowerView>(view_now()) : Result<SitePowerView>(no_site());
}

SitePowerView SitePower::view_now() {
  const double now_s = clock_.now_s();
  return site_power_view(*current(), powered_jobs_, jobs_, meters_, reservations_.at(now_s), now_s, last_);
}

std::optional<SitePowerView> SitePower::allocated_now() {
  const bool allocated = current() != nullptr && !last_.price.empty();
  return allocated ? std::optional(view_now()) : std::nullopt;
}

std::optional<jobs::JobView::SitePart> SitePower::job_now(const std::string& job) {
  const live::LiveJob* const live = current() != nullptr ? jobs_.in_memory(job) : nullptr;
  if (live == nullptr || !live->job.live()) return std::nullopt;
  const SiteJobView view = site_job_view(*current(), powered_jobs_, *live, clock_.now_s());
  const int ceiling_mhz = view.granted && live->job.grant ? live->job.grant->ceiling_mhz : 0;
  return jobs::JobView::SitePart{current()->site.domains[view.domain].name,
                                 view.least_rate,
                                 view.priority,
                                 view.state,
                                 view.reason,
                                 view.granted,
                                 ceiling_mhz,
                                 view.counted,
                                 view.planned,
                                 view.baseline,
                                 view.rate,
                                 view.rate_lost};
}

std::optional<PoweredSite> SitePower::jobs_now() {
  auto found = jobs_with(reservations_.at(clock_.now_s()));
  return found ? std::optional(std::move(found->site)) : std::nullopt;
}

std::optional<FoundJobs> SitePower::jobs_with(const std::vector<jobs::Reservation>& reservations) {
  return current() != nullptr ? find_jobs(clock_.now_s(), reservations) : std::nullopt;
}

}  // namespace perseus::power
