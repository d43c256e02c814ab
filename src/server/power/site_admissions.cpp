#include "server/power/site_admissions.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "server/live/registration_checks.h"
#include "server/plans/stored_profiles.h"
#include "server/profiles/known_profile.h"
#include "server/savings/drawn_power.h"

namespace perseus::power {
namespace {

constexpr std::size_t kLongestName = 256;

Status check_names(const jobs::SiteDocument& document, const jobs::AdmissionRequest& request) {
  if (Status named = check_text("body: job", request.job, kLongestName); !named) return named;
  if (Status named = check_text("body: team", request.team, kLongestName); !named) return named;
  for (const std::string& host : request.hosts) {
    if (Status named = check_text("body: hosts", host, kLongestName); !named) return named;
  }
  return jobs::check_domain(document, request.domain);
}

bool has_used(const FoundJobs& found, const std::string& job) {
  return std::ranges::find(found.used, job) != found.used.end();
}

std::string asked_by(const std::string& by) { return by.empty() ? "" : fmt::format(", by the token {}", by); }

/// What a job with a known profile can draw, from its frontier in the store; without clocks. Off the io thread.
Result<policies::PowerChoices> choices_of_frontier(store::Store& store, const std::string& key, int accelerators,
                                                   const std::string& whose) {
  for (const std::string& known : {key, jobs::quick_frontier_key(key)}) {
    const auto text = store.blob("frontier/" + known);
    if (!text) return text.error();
    if (!*text) continue;
    auto parsed = jobs::parse_frontier(known, **text);
    if (!parsed) return parsed.error();
    const auto pipeline = std::make_shared<const jobs::CharacterizedPipeline>(*std::move(parsed));
    const double scale = static_cast<double>(accelerators) /
                         std::accumulate(pipeline->dag.accelerators.begin(), pipeline->dag.accelerators.end(), 0);
    const Seconds fastest = pipeline->frontier.points.back().time;
    const Watts all_max =
        pipeline->all_max_effective_energy / pipeline->all_max_time + pipeline->dag.total_blocking_power();
    const std::vector<policies::PolicyScope> groups{{pipeline.get(), scale, 1, 0}};
    return policies::PowerChoices{
        policies::powers_from(groups, fastest, Seconds(0)), fastest, scale * all_max, {}, {{pipeline, scale, 0}}};
  }
  return Error{ErrorCode::unavailable,
               fmt::format("{} has no frontier yet: repeat the request, or give accelerator_w", whose)};
}

Result<policies::PowerChoices> choices_of_profile(store::Store& store, const std::string& name, int accelerators,
                                                  const jobs::InputLimits& limits) {
  const auto profile = plans::read_named_profile(store, name);
  if (!profile) return profile.error();
  const auto known = profiles::known_input(profile->profile_csv, profile->shape, limits, name, {});
  if (!known) return known.error();
  return choices_of_frontier(store, known->event.input, accelerators, fmt::format("the profile '{}'", name));
}

}  // namespace

std::string_view name_of(Admission::State state) {
  switch (state) {
    case Admission::State::admitted:
      return "admitted";
    case Admission::State::waits:
      return "waits";
    case Admission::State::refused:
      return "refused";
  }
  return "";
}

void SiteAdmissions::admit(jobs::AdmissionRequest request, work::Done<Admission> done) {
  const jobs::SiteDocument* const document = site_.documents().current();
  if (document == nullptr) return done(no_site());
  if (const Status checked = check_names(*document, request); !checked) return done(checked.error());
  find_power(request, [this, request, done = std::move(done)](const Result<KnownPower>& power) {
    if (!power) return done(power.error());
    const auto asked = std::make_shared<Asked>(Asked{request, {}, *power, std::nullopt, done});
    const Watts all_max = power->choices
                              ? power->choices->all_max * power->correction
                              : request.accelerators * request.accelerator_power.value_or(power->accelerator);
    asked->answer.reservation = {request.job, request.domain, request.hosts, request.accelerators, all_max, 0,
                                 0,           request.by,     request.team};
    decide(asked);
  });
}

// ---- What it can draw

Watts SiteAdmissions::accelerator_power(const jobs::AdmissionRequest& request) const {
  const jobs::SiteDocument& document = *site_.documents().current();
  return document.accelerator_power[jobs::domain_of(document, request.domain, request.hosts)];
}

void SiteAdmissions::find_power(const jobs::AdmissionRequest& request, work::Done<KnownPower> done) {
  if (!request.like_job.empty()) return find_power_like(request, std::move(done));
  if (request.profile.empty()) return done(KnownPower{nullptr, 1, accelerator_power(request)});
  store_.read<KnownPower>(
      [name = request.profile, accelerators = request.accelerators,
       limits = plans::input_limits(options_, 0)](store::Store& from) -> Result<KnownPower> {
        auto choices = choices_of_profile(from, name, accelerators, limits);
        if (!choices) return choices.error();
        return KnownPower{std::make_shared<const policies::PowerChoices>(*std::move(choices)), 1, Watts(0)};
      },
      std::move(done));
}

void SiteAdmissions::find_power_like(const jobs::AdmissionRequest& request, work::Done<KnownPower> done) {
  jobs_.with(request.like_job, [this, accelerators = request.accelerators, each = accelerator_power(request),
                                done = std::move(done)](const Result<live::LiveJob*>& live) {
    if (!live) return done(live.error());
    const jobs::Job& job = (*live)->job;
    std::set<std::string> keys;
    for (int p = 0; p < job.num_pipelines(); ++p) keys.insert(policies::ruling_frontier(job, p));
    const double correction = job.grant ? job.grant->correction : 1;
    store_.read<KnownPower>(
        [keys, accelerators, correction, each, bounded = job.spec.tier_bounded,
         whose = fmt::format("the job '{}'", job.id)](store::Store& from) -> Result<KnownPower> {
          KnownPower most{nullptr, correction, Watts(0)};
          for (const std::string& key : keys) {
            auto choices = choices_of_frontier(from, key, accelerators, whose);
            if (!choices) return choices.error();
            if (most.choices && choices->all_max <= most.choices->all_max) continue;
            most.choices = std::make_shared<const policies::PowerChoices>(*std::move(choices));
          }
          if (!most.choices) return most;
          const Watts all_max = most.choices->all_max;
          most.correction =
              savings::believed_power(bounded, all_max, accelerators * each).factor(most.correction, all_max);
          return most;
        },
        done);
  });
}

// ---- Decision

Result<FoundJobs> SiteAdmissions::jobs_with(const List& list) {
  auto found = site_.jobs_with(list);
  const double now_s = clock_.now_s();
  if (found && !found->reading) reading_since_s_.reset();
  if (found && found->reading && !reading_since_s_) reading_since_s_ = now_s;
  // A job that cannot be read does not stop others for long, as for the division of the watts.
  const bool is_reading = !found || (found->reading && now_s < *reading_since_s_ + SitePower::kReading_s);
  if (!is_reading) return *std::move(found);
  return Error{ErrorCode::unavailable, "the jobs of the site are still being read: repeat the request"};
}

void SiteAdmissions::decide(const AskedPtr& asked) {
  const auto ended = [this, asked](const Result<Ok>& result) { result ? decided(asked) : asked->done(result.error()); };
  if (!asked->request.dry_run) {
    const auto change = [this, asked](List list, const work::Done<std::optional<List>>& then) {
      decide_among(asked, std::move(list), then);
    };
    return site_.reservations().change(change, ended);
  }
  const auto then = [ended](const Result<std::optional<List>>& next) { next ? ended(Ok{}) : ended(next.error()); };
  decide_among(asked, site_.reservations().at(clock_.now_s()), then);
}

void SiteAdmissions::decide_among(const AskedPtr& asked, List list, const work::Done<std::optional<List>>& then) {
  const jobs::SiteDocument* const document = site_.documents().current();
  if (document == nullptr) return then(Error{ErrorCode::not_found, "the site was removed meanwhile"});
  const double now_s = clock_.now_s(), lasts_s = document->admission.value();
  jobs::Reservation& own = asked->answer.reservation;
  std::erase_if(list, [now_s](const jobs::Reservation& one) { return one.expires_s <= now_s; });
  const auto before = std::ranges::find(list, own.job, &jobs::Reservation::job);
  if (before != list.end() && before->is_same(own)) {
    const bool renews = before->expires_s < now_s + kRenewed * lasts_s && !asked->request.dry_run;
    if (renews) before->expires_s = now_s + lasts_s;
    own = *before;
    asked->answer.reserved = true;
    return then(renews ? std::optional(std::move(list)) : std::nullopt);
  }
  if (before != list.end()) {
    asked->answer.replaced = before->power;
    list.erase(before);
  }
  if (list.size() >= kMostReservations) {
    return then(
        Error{ErrorCode::too_large, fmt::format("reservations: {}; allowed: {}", list.size() + 1, kMostReservations)});
  }
  own.since_s = now_s;
  own.expires_s = now_s + lasts_s;
  list.push_back(own);
  auto found = jobs_with(list);
  if (!found) return then(found.error());
  if (has_used(*found, own.job)) return then(std::optional<List>());  // it has just started, and counts itself
  asked->found = *std::move(found);
  work::run_off_thread(
      executor_, [site = asked->found->site] { return missing_for(site); },
      [this, asked, list = std::move(list), then](const std::vector<MissingWatts>& missing) {
        name_missing(missing, asked->answer);
        if (!missing.empty()) return then(std::optional<List>());
        asked->found.reset();
        asked->answer.reserved = asked->is_new = !asked->request.dry_run;
        then(asked->request.dry_run ? std::nullopt : std::optional(list));
      });
}

void SiteAdmissions::name_missing(const std::vector<MissingWatts>& missing, Admission& answer) const {
  answer.missing.clear();
  const jobs::SiteDocument* const document = site_.documents().current();
  if (document == nullptr) return;
  for (const MissingWatts& one : missing) {
    answer.missing.push_back({document->site.domains[one.domain].name, one.watts});
  }
}

Result<FoundJobs> SiteAdmissions::jobs_before(const jobs::Reservation& own) {
  List list = site_.reservations().at(clock_.now_s());
  // Later reservations do not delay earlier ones.
  list.erase(std::ranges::find(list, own.job, &jobs::Reservation::job), list.end());
  list.push_back(own);
  return jobs_with(list);
}

void SiteAdmissions::decided(const AskedPtr& asked) {
  Admission& answer = asked->answer;
  const jobs::SiteDocument* const document = site_.documents().current();
  if (document == nullptr) return asked->done(Error{ErrorCode::not_found, "the site was removed meanwhile"});
  answer.domain = document->site.domains[jobs::domain_of(*document, answer.reservation)].name;
  const bool replaces = asked->is_new || (asked->request.dry_run && !asked->found);
  if (!replaces) answer.replaced.reset();
  if (asked->found) return explain(asked);
  auto found = jobs_before(answer.reservation);
  const bool started = found && has_used(*found, answer.reservation.job);
  answer.ready = started || (found && !found->lacks_jobs && fits_now(found->site));
  if (asked->is_new) {
    options_.host->log(fmt::format("site: {:.6g} W of '{}' are reserved for the job '{}', {:g} s{}{}",
                                   answer.reservation.power.value(), answer.domain, answer.reservation.job,
                                   document->admission.value(), asked_by(answer.reservation.by),
                                   answer.replaced ? fmt::format("; before: {:.6g} W", answer.replaced->value()) : ""));
  }
  if (!found || started) return asked->done(answer);
  look_ahead(asked, *std::move(found));
}

LaterCase SiteAdmissions::later_case(const FoundJobs& found, const Asked& asked) const {
  const double now_s = clock_.now_s();
  const jobs::SiteDocument& document = *site_.documents().current();
  return {document, found.site, found.accelerators, asked.request.accelerators, site_.meters().factors(document, now_s),
          now_s};
}

void SiteAdmissions::look_ahead(const AskedPtr& asked, FoundJobs found) {
  PoweredJob& own = found.site.jobs.back();
  own.choices = asked->power.choices;
  own.correction = asked->power.correction;
  own.least_rate = asked->request.least_rate.value_or(site_.documents().current()->least_rate);
  work::run_off_thread(
      executor_, [later = later_case(found, *asked)] { return later_shortage(later); },
      [this, asked](const std::optional<LaterShortage>& shortage) {
        if (shortage) {
          asked->answer.short_from_s = shortage->from_s;
          name_missing(shortage->missing, asked->answer);
        }
        asked->done(asked->answer);
      });
}

void SiteAdmissions::explain(const AskedPtr& asked) {
  executor_.submit(work::Executor::Kind::reading,
                   [this, asked, later = later_case(*asked->found, *asked)]() -> std::function<void()> {
                     const auto fit = std::make_shared<LaterFit>(later_fit(later));
                     return [this, asked, fit] {
                       Admission& answer = asked->answer;
                       answer.state = fit->never ? Admission::State::refused : Admission::State::waits;
                       answer.from_s = fit->from_s;
                       if (fit->never) name_missing(fit->alone, answer);
                       asked->done(answer);
                     };
                   });
}

void SiteAdmissions::release(const std::string& job, work::Done<Ok> done, const std::string& by) {
  const auto change = [host = options_.host, job, by](List list, const work::Done<std::optional<List>>& then) {
    const auto removed = std::erase_if(list, [&job](const jobs::Reservation& one) { return one.job == job; });
    if (removed == 0) {
      return then(Error{ErrorCode::not_found, fmt::format("no watts are reserved for the job '{}'", job)});
    }
    host->log(fmt::format("site: the reservation for the job '{}' has ended: released{}", job, asked_by(by)));
    then(std::optional(std::move(list)));
  };
  site_.reservations().change(change, std::move(done));
}

}  // namespace perseus::power
