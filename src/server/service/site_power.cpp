#include "server/service/site_power.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planning/site/grant_order.h"

namespace perseus::service {
namespace {

constexpr const char* kWork = "site/allocate";
constexpr const char* kBy = "site";

/// What a job's log has for that power as drawn: the power of a plan is exactly the plan's.
Watts planned_power(const PoweredJob& job, Watts drawn) {
  for (const jobs::PowerAtTime& plan : job.choices->plans) {
    if (plan.power * job.correction == drawn) return plan.power;
  }
  return drawn / job.correction;
}

}  // namespace

SitePower::SitePower(const ServiceOptions& options, StoreAccess& store, JobCache& jobs, const Clock& clock,
                     Executor& executor)
    : options_(options),
      store_(store),
      jobs_(jobs),
      clock_(clock),
      executor_(executor),
      documents_(std::make_shared<SiteDocuments>(options, store, clock)),
      powered_jobs_(options, jobs) {
  documents_->applied = [this] { document_applied(); };
  documents_->removed = [this] { release_all(); };
}

void SitePower::document_applied() {
  powered_jobs_.forget();
  last_ = {};
  ++runs_;
  dividing_ = false;
  next_s_ = next_claim_s_ = clock_.now_s();
  if (earlier_wake) earlier_wake();
}

// ---- Time

void SitePower::noticed(const LiveJob& live) {
  if (current() != nullptr) return changed();
  const bool granted = live.job.live() && live.job.grant && live.job.grant->granted_w;
  if (!granted) return;
  // Another server has a site, or it was cleared and this job still has a grant.
  documents_->read([weak = weak_from_this()](const Result<std::string>& there) {
    const auto self = weak.lock();
    if (self && !there && there.error().code == ErrorCode::not_found) self->release_all();
  });
}

void SitePower::changed() {
  if (current() == nullptr || !allocates(clock_.now_s()) || next_s_ <= clock_.now_s()) return;
  next_s_ = clock_.now_s();
  if (earlier_wake) earlier_wake();
}

std::optional<double> SitePower::next_wake() const {
  const std::optional<double> read = documents_->next_wake();
  if (current() == nullptr) return read;
  return read ? std::min(*read, next_s_) : next_s_;
}

void SitePower::tick(double now_s) {
  documents_->tick(now_s);
  if (current() == nullptr || now_s < next_s_) return;
  next_s_ = now_s + kTick_s;
  powered_jobs_.forget_removed();
  if (now_s >= next_claim_s_) claim(now_s);
  if (allocates(now_s)) allocate(now_s);
}

void SitePower::claim(double now_s) {
  next_claim_s_ = now_s + kLease_s / 3;
  store_.claim(kWork, options_.owner, now_s, kLease_s, [weak = weak_from_this(), now_s](const Result<bool>& got) {
    const auto self = weak.lock();
    if (!self || !got || !*got) return;
    if (!self->allocates(now_s)) self->allocating_s_ = now_s;
    self->mine_until_s_ = now_s + kLease_s;
    self->changed();
  });
}

// ---- Granting

std::optional<PoweredSite> SitePower::find_jobs(double now_s) {
  FoundJobs found = powered_jobs_.find(*current(), now_s, now_s + kTick_s);
  // A restarted server reads its jobs first; one that cannot be read does not stop the others for long.
  if (found.reading && now_s < allocating_s_ + kReading_s) return std::nullopt;
  return std::move(found.site);
}

void SitePower::allocate(double now_s) {
  if (dividing_) return;
  auto found = find_jobs(now_s);
  if (!found) return;
  dividing_ = true;
  const std::uint64_t run = ++runs_;
  run_off_thread(
      executor_, weak_from_this(),
      [site = std::move(*found)] { return std::pair<PoweredSite, SiteShares>(site, shares_of(site)); },
      [run](SitePower& self, std::pair<PoweredSite, SiteShares> result) {
        self.divided(run, std::move(result.first), std::move(result.second));
      });
}

void SitePower::divided(std::uint64_t run, PoweredSite site, SiteShares shares) {
  if (run != runs_) return;
  dividing_ = false;
  const double now_s = clock_.now_s();
  if (current() == nullptr || !allocates(now_s)) return;
  // What counts may have changed meanwhile.
  auto now = find_jobs(now_s);
  if (!now) return;
  std::map<std::string, Watts> wanted;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) wanted.emplace(site.jobs[j].id, shares.wanted[j]);
  std::vector<site::GrantedPower> powers;
  for (const PoweredJob& job : now->jobs) {
    const LiveJob& live = *jobs_.in_memory(job.id);
    const auto share = wanted.find(job.id);
    site::GrantedPower& power = powers.emplace_back();
    power = {job.domain, job.counted, job.granted, job.granted, true};
    if (share != wanted.end() && job.choices) power.wanted = share->second;
    power.may_rise = !job.has_grant || now_s >= live.job.granted_s + current()->dwell.value();
  }
  const std::vector<Watts> next = site::next_grants(now->domains, now->limits, powers);
  last_ = std::move(shares);
  for (std::size_t j = 0; j < next.size(); ++j) {
    if (now->jobs[j].choices) grant(now->jobs[j], next[j]);
  }
}

void SitePower::grant(const PoweredJob& job, Watts watts) {
  const bool limited = watts < job.all_max();
  if (!limited && !job.has_grant) return;
  jobs::PowerGranted granted;
  if (limited) {
    granted.granted_w = planned_power(job, watts).value();
    granted.lease_s = current()->lease.value();
    granted.ceiling_mhz = jobs::ceiling_within(*job.choices, Watts(*granted.granted_w));
    granted.correction = job.correction;
  }
  granted.counted_w = (job.counted / job.correction).value();
  granted.by = kBy;
  const bool stays = watts == job.granted;
  jobs_.execute(job.id, {[granted, stays](const jobs::Job& now, double) -> Result<Decision> {
                           Decision decision;
                           const bool never = !now.grant && !granted.granted_w;
                           if (!now.live() || never) return decision;
                           jobs::PowerGranted next = granted;
                           if (stays && now.grant && now.grant->granted_w && next.granted_w) {
                             // The plan stays, and with it what it was followed by.
                             next.granted_w = now.grant->granted_w;
                             next.counted_w = now.grant->counted_w;
                             next.by = now.grant->by;
                           }
                           const bool same = now.grant && now.grant->granted_w == next.granted_w &&
                                             now.grant->ceiling_mhz == next.ceiling_mhz &&
                                             now.grant->lease_s == next.lease_s &&
                                             now.grant->correction == next.correction;
                           if (!same) decision.events.emplace_back(next);
                           return decision;
                         },
                         {}});
}

/// There is no site any more: its limits do not apply.
void SitePower::release_all() {
  for (const auto& [id, live] : jobs_.live()) {
    if (!live->job.live() || !live->job.grant || !live->job.grant->granted_w) continue;
    jobs_.execute(id, {[](const jobs::Job& now, double) -> Result<Decision> {
                         Decision decision;
                         const bool has = now.live() && now.grant && now.grant->granted_w;
                         if (has) decision.events.emplace_back(jobs::PowerGranted{{}, 0, 0, 0, kBy});
                         return decision;
                       },
                       {}});
  }
}

void SitePower::view(Done<SitePowerView> done) {
  documents_->read([weak = weak_from_this(), done = std::move(done)](const Result<std::string>& text) {
    const auto self = weak.lock();
    if (!self) return;
    if (!text) return done(text.error());
    if (self->current() == nullptr) return done(Error{ErrorCode::internal, "the stored site cannot be read"});
    done(self->view_now());
  });
}

SitePowerView SitePower::view_now() {
  const double now_s = clock_.now_s();
  SitePowerView view = site_power_view(*current(), powered_jobs_, jobs_, now_s, last_);
  view.allocates = allocates(now_s);
  return view;
}

std::vector<SiteDomainView> SitePower::domains_now() {
  return current() != nullptr ? view_now().domains : std::vector<SiteDomainView>{};
}

}  // namespace perseus::service
