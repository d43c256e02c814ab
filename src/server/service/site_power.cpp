#include "server/service/site_power.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planning/site/grant_order.h"
#include "planning/site/site_limits.h"
#include "server/jobs/job_savings.h"
#include "server/service/site_names.h"

namespace perseus::service {
namespace {

constexpr const char* kDocumentKey = "site/document";
constexpr const char* kWork = "site/allocate";
constexpr const char* kChange = "site/change";
constexpr const char* kBy = "site";

/// All ranks have the newest version, or there was not enough time for that yet.
bool answers_in_time(const jobs::Job& job, double now_s) {
  if (!job.plan || !job.plan->budget || job.ranks_registered == 0) return true;
  const bool held = jobs::version_held_by_all(job) >= job.version;
  return held || now_s < job.deployed_s + job.plan->budget->lease_s;
}

std::string why_fixed(const jobs::Job& job) {
  if (!job.uncontrolled.empty()) return fmt::format("rank {} sets no clocks", *job.uncontrolled.begin());
  if (!jobs::keeps_budgets(job)) return "the client of a rank does not know budgets";
  return "it has no frontier";
}

bool is_running(const store::JobIndexRow& row) { return row.state != "finished" && row.state != "expired"; }

}  // namespace

struct SitePower::Found {
  PoweredSite site;
  std::vector<int> accelerators;  ///< per domain, of the jobs directly in it
};

// ---- The document

Status SitePower::open(store::Store& from) {
  const auto text = from.blob(kDocumentKey);
  if (!text) return text.error();
  if (!*text) return Ok{};
  auto document = jobs::parse_site_document(**text, "the stored site");
  if (!document) return document.error();
  apply_document(*std::move(document), **text);
  return Ok{};
}

void SitePower::apply_document(std::optional<jobs::SiteDocument> document, std::string text) {
  document_ = std::move(document);
  text_ = std::move(text);
  known_.clear();
  last_ = {};
  ++runs_;
  dividing_ = false;
  next_s_ = next_claim_s_ = clock_.now_s();
  if (earlier_wake) earlier_wake();
}

void SitePower::in_turn(Turn turn) {
  turns_.push_back(std::move(turn));
  if (turns_.size() == 1) begin_turn();
}

void SitePower::begin_turn() {
  store_.claim(kChange, options_.owner, clock_.now_s(), kLease_s, [weak = weak_from_this()](const Result<bool>& got) {
    const auto self = weak.lock();
    if (!self) return;
    if (!got) return self->end_turn(got.error());
    if (!*got) return self->end_turn(Error{ErrorCode::conflict, "another server is changing the site: try again"});
    const auto change = std::move(self->turns_.front().change);  // the turn may end within it
    change([weak](const Result<Ok>& result) {
      const auto still = weak.lock();
      if (still) still->end_turn(result);
    });
  });
}

void SitePower::end_turn(const Result<Ok>& result) {
  store_.release(kChange, options_.owner);
  const Done<Ok> done = std::move(turns_.front().done);
  turns_.pop_front();
  if (!turns_.empty()) begin_turn();
  done(result);
}

void SitePower::set(jobs::SiteDocument document, std::optional<std::string> expected, Done<Ok> done) {
  if (const Status names = check_site_names(document); !names) return done(names.error());
  const auto change = [weak = weak_from_this(), document = std::move(document),
                       expected = std::move(expected)](const Done<Ok>& changed) {
    const auto self = weak.lock();
    if (!self) return;
    if (!expected) return self->put(document, changed);
    self->document([weak, document, expected, changed](const Result<std::string>& there) {
      const auto still = weak.lock();
      if (!still) return;
      if (!there && there.error().code != ErrorCode::not_found) return changed(there.error());
      const bool same = there && (*expected == "*" || *expected == jobs::site_tag(*there));
      if (same) return still->put(document, changed);
      changed(Error{ErrorCode::conflict, "the site is not the one of If-Match any more: read it again"});
    });
  };
  in_turn({change, std::move(done)});
}

void SitePower::put(const jobs::SiteDocument& document, Done<Ok> done) {
  std::string text = jobs::format_site_document(document);
  store::Blob blob{kDocumentKey, text};
  store_.put_blob(std::move(blob), [weak = weak_from_this(), document, text = std::move(text),
                                    done = std::move(done)](const Result<Ok>& put) {
    const auto self = weak.lock();
    if (self && put) self->apply_document(document, text);
    done(put);
  });
}

void SitePower::clear(Done<Ok> done) {
  const auto change = [weak = weak_from_this()](const Done<Ok>& changed) {
    const auto self = weak.lock();
    if (self) self->remove(changed);
  };
  in_turn({change, std::move(done)});
}

void SitePower::remove(Done<Ok> done) {
  document([weak = weak_from_this(), done = std::move(done)](const Result<std::string>& there) {
    const auto self = weak.lock();
    if (!self) return;
    if (!there) return done(there.error());
    self->store_.remove_blob(kDocumentKey, [weak, done](const Result<Ok>& removed) {
      const auto still = weak.lock();
      if (still && removed) {
        still->apply_document(std::nullopt, "");
        still->release_all();
      }
      done(removed);
    });
  });
}

void SitePower::document(Done<std::string> done) {
  store_.read<std::optional<std::string>>(
      [](store::Store& from) { return from.blob(kDocumentKey); },
      [weak = weak_from_this(), done = std::move(done)](const Result<std::optional<std::string>>& text) {
        if (!text) return done(text.error());
        const auto self = weak.lock();
        if (self && text->value_or("") != self->text_) {  // another server changed it
          auto document = jobs::parse_site_document(text->value_or(""), "the stored site");
          self->apply_document(*text && document ? std::optional(*std::move(document)) : std::nullopt,
                               text->value_or(""));
        }
        if (!*text) {
          return done(Error{ErrorCode::not_found,
                            "this server has no site: set one with perseus site set FILE.toml or PUT /v1/site"});
        }
        done(**text);
      });
}

void SitePower::read_again(double now_s) {
  if (options_.site_poll_s <= 0 || now_s < next_read_s_) return;
  next_read_s_ = now_s + options_.site_poll_s;
  document([](const Result<std::string>&) {});
}

// ---- Time

void SitePower::noticed(const LiveJob& live) {
  if (document_) return changed();
  const bool granted = live.job.live() && live.job.grant && live.job.grant->granted_w;
  if (!granted) return;
  // Another server has a site, or it was cleared and this job still has a grant.
  document([weak = weak_from_this()](const Result<std::string>& there) {
    const auto self = weak.lock();
    if (self && !there && there.error().code == ErrorCode::not_found) self->release_all();
  });
}

void SitePower::changed() {
  if (!document_ || !allocates(clock_.now_s()) || next_s_ <= clock_.now_s()) return;
  next_s_ = clock_.now_s();
  if (earlier_wake) earlier_wake();
}

std::optional<double> SitePower::next_wake() const {
  const std::optional<double> read = options_.site_poll_s > 0 ? std::optional(next_read_s_) : std::nullopt;
  if (!document_) return read;
  return read ? std::min(*read, next_s_) : next_s_;
}

void SitePower::tick(double now_s) {
  read_again(now_s);
  if (!document_ || now_s < next_s_) return;
  next_s_ = now_s + kTick_s;
  std::erase_if(known_, [&](const auto& known) { return jobs_.index().find(known.first) == jobs_.index().end(); });
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

std::vector<Watts> SitePower::limits_now(double now_s, const std::vector<int>& accelerators) const {
  const model::SiteDescription& site = document_->site;
  const std::vector<Watts> constants = site::constants_of(site, accelerators);
  std::vector<Watts> limits;
  for (std::size_t d = 0; d < site.domains.size(); ++d) {
    const model::DescribedDomain& domain = site.domains[d];
    // Until the next tick.
    const Watts metered = std::min(site::ramped_limit(domain.limits, domain.ramp, Seconds(now_s)),
                                   site::ramped_limit(domain.limits, domain.ramp, Seconds(now_s + kTick_s)));
    limits.push_back(site::left_for_accelerators(metered, site, constants[d]));
  }
  return limits;
}

PoweredJob SitePower::powered(const LiveJob& live, double now_s, SiteJobView* shown) {
  const jobs::Job& job = live.job;
  PoweredJob powered;
  powered.id = job.id;
  powered.least_rate = job.spec.least_rate.value_or(document_->least_rate);
  const int accelerators = job.spec.degrees.world_size();
  powered.weight = accelerators * job.spec.priority.value_or(1);
  KnownJob& known = known_[job.id];
  if (known.sequence != job.sequence) known.domain = jobs::domain_of(*document_, job);
  powered.domain = known.domain;
  if (known.sequence != job.sequence || !known.choices || now_s >= known.until_s) {
    const auto made = jobs::power_choices(job, live.frontiers.all(), options_.slowdown, now_s);
    known.choices = made ? std::make_shared<const jobs::PowerChoices>(*made) : nullptr;
    known.sequence = job.sequence;
    known.until_s = jobs::next_policy_change(job.policies, now_s).value_or(std::numeric_limits<double>::infinity());
  }
  const Watts all_max = known.choices ? known.choices->all_max : accelerators * document_->accelerator_power;
  powered.has_grant = job.grant && job.grant->granted_w;
  powered.granted = powered.has_grant ? Watts(*job.grant->granted_w) : all_max;
  const auto counted = jobs::keeps_budgets(job) ? jobs::counted_power(job) : std::nullopt;
  powered.counted = counted                    ? std::max(*counted, powered.has_grant ? powered.granted : *counted)
                    : job.ranks_registered > 0 ? std::max(all_max, powered.granted)
                    : powered.has_grant        ? powered.granted
                                               : Watts(0);
  const bool keeps = jobs::keeps_budgets(job) && answers_in_time(job, now_s);
  const bool planned = job.state == jobs::JobState::deployed || job.state == jobs::JobState::characterizing;
  if (keeps && planned) powered.choices = known.choices;
  if (!powered.choices && !powered.has_grant) powered.granted = powered.counted;
  if (shown != nullptr) {
    shown->state = powered.has_grant ? "granted" : powered.choices ? "unlimited" : "fixed";
    if (!powered.choices) {
      shown->state = "fixed";
      shown->reason = answers_in_time(job, now_s) ? why_fixed(job) : "its ranks have not asked for the last plan";
    }
    if (!job.spec.domain.empty() && document_->site.domains[powered.domain].name != job.spec.domain) {
      shown->reason += fmt::format("{}the site has no domain '{}': it is in that of its hosts",
                                   shown->reason.empty() ? "" : "; ", job.spec.domain);
    }
  }
  return powered;
}

std::optional<SitePower::Found> SitePower::find_jobs(double now_s) {
  Found found;
  bool reading = false;
  std::vector<std::string> unread;
  for (const auto& [id, row] : jobs_.index()) {
    if (is_running(row) && jobs_.in_memory(id) == nullptr) unread.push_back(id);
  }
  for (const std::string& id : unread) {
    reading = true;
    if (!jobs_.is_loading(id)) jobs_.load(id, [](const auto&) {});
  }
  found.accelerators.resize(document_->site.domains.size());
  for (const model::DescribedDomain& domain : document_->site.domains) {
    found.site.domains.push_back({domain.name, domain.parent});
  }
  found.site.objective = document_->objective;
  for (const auto& [id, row] : jobs_.index()) {
    const LiveJob* const live = jobs_.in_memory(id);
    if (live == nullptr || !live->job.live() || live->job.unknown_events > 0) continue;
    for (const std::string& key : jobs::frontiers_needed(live->job)) reading |= live->frontiers.find(key) == nullptr;
    found.site.jobs.push_back(powered(*live, now_s));
    found.accelerators[found.site.jobs.back().domain] += live->job.spec.degrees.world_size();
  }
  // A restarted server reads its jobs first; one that cannot be read does not stop the others for long.
  if (reading && now_s < allocating_s_ + kReading_s) return std::nullopt;
  found.site.limits = limits_now(now_s, found.accelerators);
  return found;
}

void SitePower::allocate(double now_s) {
  if (dividing_) return;
  auto found = find_jobs(now_s);
  if (!found) return;
  dividing_ = true;
  const std::uint64_t run = ++runs_;
  run_off_thread(
      executor_, weak_from_this(),
      [site = std::move(found->site)] { return std::pair<PoweredSite, SiteShares>(site, shares_of(site)); },
      [run](SitePower& self, std::pair<PoweredSite, SiteShares> result) {
        self.divided(run, std::move(result.first), std::move(result.second));
      });
}

void SitePower::divided(std::uint64_t run, PoweredSite site, SiteShares shares) {
  if (run != runs_) return;
  dividing_ = false;
  const double now_s = clock_.now_s();
  if (!document_ || !allocates(now_s)) return;
  // What counts may have changed meanwhile.
  auto now = find_jobs(now_s);
  if (!now) return;
  std::map<std::string, Watts> wanted;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) wanted.emplace(site.jobs[j].id, shares.wanted[j]);
  std::vector<site::GrantedPower> powers;
  for (const PoweredJob& job : now->site.jobs) {
    const LiveJob& live = *jobs_.in_memory(job.id);
    const auto share = wanted.find(job.id);
    site::GrantedPower& power = powers.emplace_back();
    power = {job.domain, job.counted, job.granted, job.granted, true};
    if (share != wanted.end() && job.choices) power.wanted = share->second;
    power.may_rise = !job.has_grant || now_s >= live.job.granted_s + document_->dwell.value();
  }
  const std::vector<Watts> next = site::next_grants(now->site.domains, now->site.limits, powers);
  last_ = std::move(shares);
  for (std::size_t j = 0; j < next.size(); ++j) {
    if (now->site.jobs[j].choices) grant(now->site.jobs[j], next[j]);
  }
}

void SitePower::grant(const PoweredJob& job, Watts watts) {
  const bool limited = watts < job.choices->all_max;
  if (!limited && !job.has_grant) return;
  jobs::PowerGranted granted;
  if (limited) {
    granted.granted_w = watts.value();
    granted.lease_s = document_->lease.value();
    granted.ceiling_mhz = jobs::ceiling_within(*job.choices, watts);
  }
  granted.counted_w = job.counted.value();
  granted.by = kBy;
  jobs_.execute(job.id, {[granted](const jobs::Job& now, double) -> Result<Decision> {
                           Decision decision;
                           const bool same = now.grant && now.grant->granted_w == granted.granted_w &&
                                             now.grant->ceiling_mhz == granted.ceiling_mhz &&
                                             now.grant->lease_s == granted.lease_s;
                           const bool never = !now.grant && !granted.granted_w;
                           if (now.live() && !same && !never) decision.events.emplace_back(granted);
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

// ---- The view

void SitePower::view(Done<SitePowerView> done) {
  document([weak = weak_from_this(), done = std::move(done)](const Result<std::string>& text) {
    const auto self = weak.lock();
    if (!self) return;
    if (!text) return done(text.error());
    if (!self->document_) return done(Error{ErrorCode::internal, "the stored site cannot be read"});
    done(self->view_now());
  });
}

SitePowerView SitePower::view_now() {
  const double now_s = clock_.now_s();
  SitePowerView view;
  view.now_s = now_s;
  view.allocates = allocates(now_s);
  const std::vector<model::DescribedDomain>& domains = document_->site.domains;
  view.domains.resize(domains.size());
  std::vector<int> accelerators(domains.size());
  for (const auto& [id, row] : jobs_.index()) {
    const LiveJob* const live = jobs_.in_memory(id);
    if (live == nullptr || !live->job.live()) continue;
    SiteJobView& job = view.jobs.emplace_back();
    const PoweredJob power_now = powered(*live, now_s, &job);
    job.job = id;
    job.name = live->job.spec.name;
    job.domain = power_now.domain;
    job.least_rate = power_now.least_rate;
    if (power_now.has_grant) job.granted = power_now.granted;
    job.counted = power_now.counted;
    const auto cost = jobs::iteration_cost(live->job, live->frontiers.all(), jobs::CountedRanks::as_they_are);
    if (cost && live->job.has_reports()) {
      const jobs::JobPower power = jobs::power_of(live->job, *cost);
      if (power.measured) job.reported = power.plan;
    }
    accelerators[power_now.domain] += live->job.spec.degrees.world_size();
    for (int d = power_now.domain; d >= 0; d = domains[d].parent) {
      view.domains[d].granted += job.granted.value_or(job.counted);
      view.domains[d].counted += job.counted;
      view.domains[d].reported += job.reported.value_or(Watts(0));
    }
  }
  const std::vector<Watts> limits = limits_now(now_s, accelerators);
  for (std::size_t d = 0; d < domains.size(); ++d) {
    SiteDomainView& domain = view.domains[d];
    domain.name = domains[d].name;
    if (domains[d].parent >= 0) domain.parent = domains[domains[d].parent].name;
    const Watts metered = site::ramped_limit(domains[d].limits, domains[d].ramp, Seconds(now_s));
    if (metered != model::kNoLimit) domain.metered = metered, domain.limit = std::max(Watts(0), limits[d]);
    if (d < last_.price.size()) {
      domain.price = last_.price[d];
      domain.missing = last_.missing[d];
      domain.gives = last_.gives[d];
    }
  }
  return view;
}

std::vector<SiteDomainView> SitePower::domains_now() {
  return document_ ? view_now().domains : std::vector<SiteDomainView>{};
}

}  // namespace perseus::service
