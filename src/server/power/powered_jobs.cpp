#include "server/power/powered_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "planning/site/power_curve.h"
#include "planning/site/site_limits.h"
#include "server/jobs/event_text.h"
#include "server/jobs/power_budget.h"
#include "server/savings/drawn_power.h"
#include "server/savings/job_savings.h"

namespace perseus::power {
namespace {

bool have_all_registered(const jobs::Job& job) { return job.ranks_registered == job.spec.degrees.world_size(); }

/// All ranks have the newest version, or there was not enough time for that yet.
bool answers_in_time(const jobs::Job& job, double now_s) {
  if (!job.plan || !job.plan->budget || !have_all_registered(job)) return true;
  const bool held = jobs::version_held_by_all(job) >= job.version;
  return held || now_s < job.deployed_s + job.plan->budget->lease_s;
}

/// What accelerators draw that compute nothing: as in the profile, or without one a part of what each counts as.
Watts idle_power(const policies::PowerChoices* choices, int accelerators, Watts accelerator) {
  constexpr double idle_share = 0.2;
  if (choices == nullptr) return idle_share * accelerators * accelerator;
  Watts idle;
  for (const policies::PowerChoices::Pipelines& one : choices->pipelines) {
    idle += (one.following + one.straggling) * one.pipeline->dag.total_blocking_power();
  }
  return idle;
}

/// Processes of a silent job have ended, so the others cannot train without them.
bool cannot_train(const jobs::Job& job) { return job.silent && job.silent->ended > 0; }

std::string why_silent(const jobs::Job& job) {
  if (cannot_train(job)) return fmt::format("the processes of {} of its ranks have ended", job.silent->ended);
  return "no rank calls: they may be cut off, and keep their grant or ceiling; if the job has ended, finish it";
}

std::string why_fixed(const jobs::Job& job) {
  if (!have_all_registered(job)) {
    return fmt::format("{} of {} ranks have registered: it counts for {}", job.ranks_registered,
                       job.spec.degrees.world_size(),
                       job.has_reports() ? "all, since one reports iterations" : "these");
  }
  if (!job.uncontrolled.empty()) return fmt::format("rank {} sets no clocks", *job.uncontrolled.begin());
  if (!jobs::keeps_budgets(job)) return "the client of a rank does not know budgets";
  return "it has no frontier";
}

/// The most that its ranks may draw now, as planned.
Watts counted_as(const jobs::Job& job, Watts all_max, bool has_grant, Watts granted, double now_s) {
  const auto counted = jobs::keeps_budgets(job) ? jobs::counted_power(job, now_s) : std::nullopt;
  if (!counted) return std::max(all_max, granted);
  return has_grant ? std::max(*counted, granted) : *counted;
}

/// By the counters of its ranks; nothing while they have not measured the plan in force.
std::optional<Watts> reported_power(const live::LiveJob& live) {
  if (!live.job.has_reports() || live.job.silent) return std::nullopt;
  const auto cost = savings::iteration_cost(live.job, live.frontiers.all(), savings::CountedRanks::as_they_are);
  return cost ? savings::measured_power(live.job, cost->waiting) : std::nullopt;
}

/// Why a job does not count as its profile says; empty: it does.
std::string why_bounded(Watts all_max, const savings::BelievedPower& believed) {
  const Watts counted = std::clamp(all_max, believed.least, believed.most);
  if (counted == all_max) return "";
  return fmt::format("at maximum clock {:.6g} W by its profile; allowed by accelerator_w: {:.6g} to {:.6g} W",
                     all_max.value(), believed.least.value(), believed.most.value());
}

/// Waits may slow the job to this part of its full speed; 0: no waits.
double paced_to_rate(const jobs::SiteDocument& document, const jobs::Job& job, double least_rate) {
  if (!document.pacing || !jobs::paces(job)) return 0;
  return std::max(least_rate, site::kPaceStep);
}

bool is_running(const store::JobIndexRow& row) { return row.state != "finished" && row.state != "expired"; }

}  // namespace

void PoweredJobs::forget_removed() {
  const auto is_removed = [&](const auto& known) { return jobs_.index().find(known.first) == jobs_.index().end(); };
  std::erase_if(known_, is_removed);
  std::erase_if(reserved_in_, is_removed);
}

PoweredJobs::KnownJob& PoweredJobs::known(const jobs::SiteDocument& document, const live::LiveJob& live, double now_s) {
  const jobs::Job& job = live.job;
  KnownJob& known = known_[job.id];
  const bool is_same = known.sequence == job.sequence && known.times_read == live.times_read;
  if (!is_same) known.tier = jobs::tier_of(document, job);
  if (!is_same || !known.choices || now_s >= known.until_s) {
    const auto made = policies::power_choices(job, live.frontiers.all(), options_.slowdown, now_s,
                                              paced_to_rate(document, job, known.tier.least_rate));
    known.choices = made ? std::make_shared<const policies::PowerChoices>(*made) : nullptr;
    known.swing = known.choices ? swings_.of(known.choices) : nullptr;
    const Watts accelerators = job.spec.degrees.world_size() * document.accelerator_power[known.tier.domain];
    const Watts all_max = known.choices ? known.choices->all_max : accelerators;
    const savings::BelievedPower believed = savings::believed_power(job.spec.tier_bounded, all_max, accelerators);
    known.reported = reported_power(live);
    if (known.reported) known.reported = std::min(*known.reported, believed.most);
    known.correction = known.choices ? savings::drawn_over_planned(job, live.frontiers.all(), all_max, believed)
                       : job.grant   ? job.grant->correction
                                     : 1;
    known.bounded = why_bounded(all_max, believed);
    known.sequence = job.sequence;
    known.times_read = live.times_read;
    known.until_s = policies::next_policy_change(job.policies, now_s).value_or(std::numeric_limits<double>::infinity());
  }
  return known;
}

PoweredJob PoweredJobs::powered(const jobs::SiteDocument& document, const live::LiveJob& live, double now_s,
                                SiteJobView* shown) {
  const jobs::Job& job = live.job;
  const KnownJob& known = this->known(document, live, now_s);
  PoweredJob powered;
  powered.id = job.id;
  powered.domain = known.tier.domain;
  powered.least_rate = known.tier.least_rate;
  const int accelerators = job.spec.degrees.world_size();
  powered.weight = accelerators * known.tier.priority;
  powered.correction = known.correction;
  const Watts accelerator = document.accelerator_power[powered.domain];
  const int counting = jobs::counted_accelerators(job);
  if (counting == accelerators) powered.swing = known.swing;
  const double share = static_cast<double>(counting) / accelerators;
  const Watts planned_max =
      share * (known.choices ? known.choices->all_max : accelerators * accelerator / known.correction);
  powered.has_grant = job.grant && job.grant->granted_w;
  const Watts granted = powered.has_grant ? share * Watts(*job.grant->granted_w) : planned_max;
  powered.granted = granted * known.correction;
  powered.counted = counted_as(job, planned_max, powered.has_grant, granted, now_s) * known.correction;
  if (known.reported) powered.counted = std::max(powered.counted, *known.reported);
  const bool keeps = jobs::keeps_budgets(job) && answers_in_time(job, now_s);
  const bool planned = job.state == jobs::JobState::deployed || job.state == jobs::JobState::characterizing;
  if (keeps && planned && have_all_registered(job)) powered.choices = known.choices;
  if (cannot_train(job)) {
    powered.counted = powered.granted =
        share * idle_power(job.spec.tier_bounded ? nullptr : known.choices.get(), accelerators, accelerator);
    powered.choices = nullptr;
  }
  if (!powered.choices && !powered.has_grant) powered.granted = powered.counted;
  if (shown != nullptr) {
    const auto add_reason = [shown](const std::string& more) {
      shown->reason += (shown->reason.empty() ? "" : "; ") + more;
    };
    shown->state = powered.has_grant ? "granted" : powered.choices ? "unlimited" : "fixed";
    if (!powered.choices) {
      shown->state = "fixed";
      shown->reason = answers_in_time(job, now_s) ? why_fixed(job) : "its ranks have not asked for the last plan";
    }
    if (job.silent) {
      shown->state = jobs::kSilentState;
      shown->reason = why_silent(job);
      shown->silent_since_s = job.silent->since_s;
    }
    shown->silent_ranks = static_cast<int>(job.silent_ranks.size());
    if (shown->silent_ranks > 0) add_reason(jobs::text_of_silent_ranks(job));
    shown->reported = known.reported;
    shown->priority = known.tier.priority;
    if (!known.tier.reason.empty()) add_reason(known.tier.reason);
    if (!known.bounded.empty()) add_reason(known.bounded);
    if (of_another_team_.contains(job.id)) add_reason("watts are reserved under its name, but not for its team");
    const auto elsewhere = reserved_in_.find(job.id);
    if (elsewhere != reserved_in_.end()) add_reason(fmt::format("its watts were reserved in '{}'", elsewhere->second));
  }
  return powered;
}

std::vector<std::string> PoweredJobs::unread() const {
  std::vector<std::string> unread;
  for (const auto& [id, row] : jobs_.index()) {
    if (!is_running(row)) continue;
    const live::LiveJob* const live = jobs_.in_memory(id);
    if (live == nullptr || live->job.unknown_events > 0) unread.push_back(id);
  }
  return unread;
}

FoundJobs PoweredJobs::find(const jobs::SiteDocument& document, double now_s, double until_s,
                            const std::vector<double>& meter_factors,
                            const std::vector<jobs::Reservation>& reservations) {
  FoundJobs found;
  for (const std::string& id : unread()) {
    found.reading = found.lacks_jobs = true;
    if (jobs_.in_memory(id) == nullptr && !jobs_.is_loading(id)) jobs_.load(id, [](const auto&) {});
  }
  of_another_team_.clear();
  std::vector<int>& accelerators = found.accelerators;
  accelerators.resize(document.site.domains.size());
  for (const model::DescribedDomain& domain : document.site.domains) {
    found.site.domains.push_back({domain.name, domain.parent});
  }
  found.site.objective = document.objective;
  ReservedPowers reserved(document, reservations);
  if (std::ranges::any_of(document.site.domains, [](const auto& domain) { return domain.window.has_value(); })) {
    for (const model::DescribedDomain& domain : document.site.domains) found.site.windows.push_back(domain.window);
  }
  for (const auto& [id, row] : jobs_.index()) {
    const live::LiveJob* const live = jobs_.in_memory(id);
    if (live == nullptr || !live->job.live() || live->job.unknown_events > 0) continue;
    for (const std::string& key : policies::frontiers_needed(live->job)) {
      found.reading |= live->frontiers.find(key) == nullptr;
    }
    found.site.jobs.push_back(powered(document, *live, now_s));
    const PoweredJob& job = found.site.jobs.back();
    accelerators[job.domain] += site::in_own_nodes(jobs::counted_accelerators(live->job), document.site);
    if (!reserved.take(live->job, job.domain, job.counted)) of_another_team_.insert(id);
  }
  for (std::size_t k = 0; k < reservations.size(); ++k) {
    const ReservedPower& one = reserved.all()[k];
    if (one.used) {
      found.used.push_back(reservations[k].job);
      if (!one.moved.empty()) {
        const std::string& reserved_in = document.site.domains[one.domain].name;
        found.moved[reservations[k].job] = document.site.domains[known_[one.moved].tier.domain].name;
        reserved_in_[one.moved] = reserved_in;
      }
      continue;
    }
    accelerators[one.domain] += site::in_own_nodes(one.accelerators, document.site);
    PoweredJob& job = found.site.jobs.emplace_back();
    job.domain = one.domain;
    job.counted = job.granted = one.counted;
  }
  found.site.limits = limits_between(document, now_s, until_s, accelerators, meter_factors);
  return found;
}

std::vector<Watts> limits_between(const jobs::SiteDocument& document, double from_s, double until_s,
                                  const std::vector<int>& accelerators, const std::vector<double>& meter_factors) {
  const model::SiteDescription& site = document.site;
  const std::vector<Watts> constants = site::constants_of(site, accelerators);
  std::vector<Watts> limits;
  for (std::size_t d = 0; d < site.domains.size(); ++d) {
    const model::DescribedDomain& domain = site.domains[d];
    const Watts metered = std::min(site::ramped_limit(domain.limits, domain.ramp, Seconds(from_s)),
                                   site::ramped_limit(domain.limits, domain.ramp, Seconds(until_s)));
    limits.push_back(site::left_for_accelerators(metered == model::kNoLimit ? metered : metered / meter_factors[d],
                                                 site, constants[d]));
  }
  return limits;
}

ReservedPowers::ReservedPowers(const jobs::SiteDocument& document, std::span<const jobs::Reservation> reservations)
    : reservations_(reservations) {
  for (const jobs::Reservation& one : reservations) {
    of_name_.emplace(one.job, all_.size());
    all_.push_back({jobs::domain_of(document, one), one.power, one.accelerators, false});
  }
}

bool ReservedPowers::take(const jobs::Job& job, int domain, Watts counted) {
  bool is_its_own = true;
  const auto [begin, end] = of_name_.equal_range(job.spec.name);
  for (auto found = begin; found != end; ++found) {
    ReservedPower& one = all_[found->second];
    if (!reservations_[found->second].is_for(job)) {
      is_its_own = false;
      continue;
    }
    const bool uses = jobs::counted_accelerators(job) == job.spec.degrees.world_size() &&
                      job.joined_s >= reservations_[found->second].since_s;
    if (uses && domain != one.domain) one.moved = job.id;
    one.used |= uses;
    if (one.used) one.counted = Watts(0), one.accelerators = 0;
    if (domain != one.domain) continue;
    one.counted = std::max(Watts(0), one.counted - counted);
    one.accelerators = std::max(0, one.accelerators - jobs::counted_accelerators(job));
  }
  return is_its_own;
}

}  // namespace perseus::power
