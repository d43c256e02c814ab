#include "server/service/service.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/alerts/alert_message.h"
#include "server/jobs/identity.h"
#include "server/jobs/view_json.h"
#include "server/service/service_members.h"

namespace perseus::service {
namespace {

work::Keep keep_of(const ServiceOptions& options) {
  return {options.keep_finished_s, options.keep_finished_bytes, options.keep_unused_s, options.keep_minutes_s,
          options.keep_hours_s};
}

std::string line_of(const jobs::Alert& alert) {
  return fmt::format("{}: alert {} {}: {}", alerts::name_of_subject(alert), name_of(alert.kind),
                     alert.resolved_s ? "resolved" : "raised", alert.text);
}

}  // namespace

Service::Parts::Parts(ServiceOptions given, store::Store& the_store, const Clock& the_clock, work::Executor& executor)
    : options(std::move(given)),
      clock(the_clock),
      opened_s(clock.now_s()),
      gate(executor),
      store(the_store, clock, due, gate, options.store_answers_s),
      characterizations(options, store, clock, due, gate),
      follow_ups(options, opened_s),
      jobs(store, clock, due, *this),
      list(jobs, clock),
      access(jobs, clock),
      subscriptions(jobs, store, clock, due),
      recent(jobs, store, clock),
      limit_changes(store, clock, [this](jobs::JobEvent event) { recent.add(std::move(event)); }),
      profiles(options, store, gate, characterizations),
      uploads(options, jobs, access, gate),
      latencies(options, jobs, store, clock, gate),
      shapes(options, jobs, store, clock, gate),
      rank_plans(jobs, store, clock, latencies),
      held_plans(jobs, clock, due),
      waiting(options, jobs, clock, due, access, rank_plans, held_plans),
      frontiers(jobs, clock, characterizations),
      windows(options, jobs, store, clock, gate, characterizations, profiles),
      stragglers(jobs, access, gate),
      history(store, clock, due, access, jobs::random_hex_id().substr(0, 16)),
      reports(jobs, clock, access, windows, stragglers, history),
      registrations(options, opened_s, jobs, store, clock, gate, access, waiting),
      operations(jobs, clock, access, profiles),
      reads(clock, access, frontiers, characterizations, rank_plans),
      reactions(jobs, clock, {subscriptions, waiting, frontiers, windows, latencies, shapes, list}),
      site(options, store, jobs, clock, due, gate),
      site_history(store, clock, jobs::random_hex_id().substr(0, 16)),
      forecasts(site, jobs, clock, due, gate),
      admissions(options, site, jobs, store, clock, gate),
      watch(jobs, clock, due, options.alert_after_s),
      sent_alerts(store, clock, due) {}

std::optional<jobs::EventBody> Service::Parts::next_follow_up(live::LiveJob& live, double now_s) {
  return follow_ups.next(live, now_s);
}
std::optional<double> Service::Parts::due_s(const live::LiveJob& live, double now_s) const {
  return follow_ups.due_s(live, now_s);
}
void Service::Parts::wake(const std::string& id) { reactions.wake(id); }
std::string Service::Parts::summary(const live::LiveJob& live) const {
  return jobs::format_summary(list.summary_of(live));
}
void Service::Parts::writing(const live::LiveJob& live, std::int64_t bytes) {
  const auto owner = live.job.spec.facts.find(std::string(live::kOwnerFact));
  if (owner != live.job.spec.facts.end()) stored_bytes->add(owner->second, bytes);
}
void Service::Parts::written(const std::vector<live::SequencedEvent>& events) { energy.take(events); }
void Service::Parts::committed(live::LiveJob& live, const std::vector<live::SequencedEvent>& events) {
  recent.take(live.job.id, events);
  reactions.committed(live, events);
  site.noticed(live);
}
void Service::Parts::shown(live::LiveJob& live) { waiting.answer(live); }
void Service::Parts::removed(live::LiveJob& live) { reactions.removed(live); }

Status Service::Parts::read(store::Store& from) {
  if (Status opened = jobs.open(from); !opened) return opened;
  if (Status read = site.documents().open(from); !read) return read;
  if (Status read = limit_changes.open(from); !read) return read;
  if (Status read = site.meters().open(from); !read) return read;
  if (Status read = site.reservations().open(from); !read) return read;
  upkeep.emplace(
      keep_of(options), store, clock, due,
      [this](const std::string& id, std::function<void(const Status&)> done) { jobs.remove(id, std::move(done)); });
  stored_bytes.emplace(store, due, work::StoredBytes::count(from), clock.now_s());
  return Ok{};
}

void Service::Parts::connect() {
  site.documents().changed = [this](const auto* before, const auto* after, const std::string& by) {
    limit_changes.note(before, after, by);
  };
  reactions.log = options.log;
  watch.alerts().changed = [this](const jobs::Alert& alert) {
    if (options.log) options.log(line_of(alert));
    sent_alerts.changed(alert);
  };
  sent_alerts.send = [this](const jobs::Alert& alert) {
    alert.resolved_s ? webhook->send(alerts::format_alert_message(alert), alert)
                     : webhook->send(alerts::format_alert_message(alert));
  };
  use(options.alert_receiver);
  watch.site = site_history.reading = [this] { return site.allocated_now(); };
  jobs.index().on_erased = [this](const store::JobIndexRow& gone) {
    recent.job_removed(gone);
    subscriptions.job_removed(gone);
  };
}

void Service::Parts::use(const alerts::AlertReceiver& receiver) {
  options.alert_receiver = receiver;
  webhook->set_receiver(receiver);
  sent_alerts.enable(!receiver.url.empty());
}

Service::Service(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Service::~Service() {
  parts_->reports.stop();
  parts_->windows.stop();
  parts_->waiting.stop();
}

Result<std::unique_ptr<Service>> Service::open(ServiceOptions options, store::Store& store, const Clock& clock,
                                               work::Executor& executor) {
  if (!options.random_id) options.random_id = jobs::random_hex_id;
  auto parts = std::make_unique<Parts>(std::move(options), store, clock, executor);
  if (Status opened = parts->read(store); !opened) return opened.error();
  parts->connect();
  return std::unique_ptr<Service>(new Service(std::move(parts)));
}

// ---- Requests

void Service::put_profile(jobs::NamedProfile profile, work::Done<jobs::StoredProfile> done) {
  parts_->profiles.put(profile, std::move(done));
}
void Service::profile(const std::string& name, work::Done<jobs::NamedProfile> done) {
  parts_->profiles.get(name, std::move(done));
}
void Service::profiles(work::Done<std::vector<std::string>> done) { parts_->profiles.names(std::move(done)); }
void Service::remove_profile(const std::string& name, work::Done<Ok> done) {
  parts_->profiles.remove(name, std::move(done));
}
void Service::learned_profiles(work::Done<std::vector<jobs::LearnedProfile>> done) {
  parts_->profiles.learned(std::move(done));
}
void Service::forget_learned(const std::string& id, work::Done<Ok> done) {
  parts_->profiles.forget_learned(id, std::move(done));
}

void Service::register_job(jobs::RegisterJob request, work::Done<jobs::RegisterJobAnswer> done) {
  parts_->registrations.register_job(std::move(request), std::move(done));
}
void Service::registered_before(const jobs::RegisterJob& request, work::Done<jobs::RegisterJobAnswer> done) {
  parts_->registrations.registered_before(request, std::move(done));
}
void Service::register_rank(jobs::RegisterRank request, work::Done<jobs::RegisterRankAnswer> done) {
  parts_->registrations.register_rank(std::move(request), std::move(done));
}
void Service::upload_profile(const std::string& job, jobs::NamedProfile profile, std::vector<int> pipelines,
                             work::Done<Ok> done, std::string by) {
  parts_->uploads.upload(job, std::move(profile), std::move(pipelines), std::move(by), std::move(done));
}
void Service::report_iterations(jobs::ReportIterations request, work::Done<jobs::ReportedIterations> done) {
  parts_->reports.report(std::move(request), std::move(done));
}
void Service::drop_plan(jobs::DropPlan request, work::Done<Ok> done) {
  parts_->operations.drop_plan(std::move(request), std::move(done));
}
void Service::see_shape(jobs::SeeShape request, work::Done<Ok> done) {
  parts_->operations.see_shape(std::move(request), std::move(done));
}

void Service::finish_job(const std::string& job, work::Done<Ok> done, const std::string& by) {
  parts_->operations.finish(job, by, std::move(done));
}
void Service::remove_job(const std::string& job, work::Done<Ok> done, const std::string& by) {
  parts_->recent.expect_removal(job, by);
  parts_->operations.remove(job, [this, job, done = std::move(done)](const Result<Ok>& removed) {
    parts_->recent.forget_removal(job);
    done(removed);
  });
}

jobs::WaitId Service::wait_for_plan(jobs::WaitForPlan request, work::Done<jobs::PlanAnswer> done) {
  return parts_->waiting.wait(std::move(request), std::move(done));
}
bool Service::cancel_wait(jobs::WaitId wait) { return parts_->waiting.cancel(wait); }
void Service::wait_closed(jobs::WaitId wait) { parts_->waiting.closed(wait); }
void Service::rank_ended(const std::string& job, int rank, std::int64_t epoch) {
  live::LiveJob* const live = parts_->jobs.in_memory(job);
  if (live != nullptr && live->has_rank(rank)) parts_->waiting.ended(*live, rank, epoch);
}
void Service::set_straggler(jobs::SetStraggler request, work::Done<jobs::StragglerSet> done) {
  parts_->stragglers.set(std::move(request), std::move(done));
}
void Service::withdraw_straggler(jobs::WithdrawStraggler request, work::Done<Ok> done) {
  parts_->stragglers.withdraw(std::move(request), std::move(done));
}
void Service::set_policy(jobs::SetPolicy request, work::Done<jobs::PolicyChanged> done) {
  parts_->operations.set_policy(std::move(request), std::move(done));
}
void Service::clear_policy(jobs::ClearPolicy request, work::Done<Ok> done) {
  parts_->operations.clear_policy(std::move(request), std::move(done));
}
void Service::set_tier(jobs::SetTier request, work::Done<Ok> done) {
  if (const jobs::SiteDocument* const site = parts_->site.documents().current()) {
    if (Status known = jobs::check_domain(*site, request.tier.domain); !known) return done(known.error());
  }
  parts_->operations.set_tier(std::move(request), std::move(done));
}

// ---- Reads

const views::JobList& Service::job_list() { return parts_->list.list(); }
void Service::refresh_row(const std::string& job) { parts_->list.refresh(job); }
std::optional<std::string> Service::owner_of(const std::string& job) { return parts_->list.owner_of(job); }

views::JobList::Owned Service::owned_by(const std::string& token) {
  views::JobList::Owned owned = parts_->list.list().owned_by(token);
  const views::JobList::Owned under_way = parts_->registrations.under_way(token);
  owned.jobs += under_way.jobs;
  owned.ranks += under_way.ranks;
  return owned;
}

std::int64_t Service::stored_bytes_of(const std::string& token) const { return parts_->stored_bytes->of(token); }
void Service::keep_job_changes(bool keep) { parts_->list.keep_changes(keep); }
std::vector<views::JobList::Change> Service::take_job_changes() { return parts_->list.take_changes(); }
void Service::on_list_changed(std::function<void()> changed) { parts_->list.on_changed = std::move(changed); }
void Service::job(const std::string& job, work::Done<jobs::JobView> done) {
  parts_->reads.job(job, [this, done = std::move(done)](Result<jobs::JobView> view) {
    if (view) view->site = parts_->site.job_now(view->header.job);
    done(std::move(view));
  });
}
void Service::frontier(const std::string& job, int pipeline,
                       work::Done<std::shared_ptr<const jobs::CharacterizedPipeline>> done) {
  parts_->reads.frontier(job, pipeline, std::move(done));
}
void Service::timeline(const std::string& job, int pipeline, work::Done<jobs::TimelineView> done) {
  parts_->reads.timeline(job, pipeline, std::move(done));
}
void Service::ranks(jobs::RankQuery of, work::Done<jobs::RankPage> to) {
  parts_->reads.ranks(std::move(of), std::move(to));
}
void Service::hosts(jobs::HostQuery of, work::Done<jobs::HostPage> to) {
  parts_->reads.hosts(std::move(of), std::move(to));
}

void Service::history(const savings::HistoryQuery& query, work::Done<savings::HistoryView> done) {
  parts_->history.history(query, std::move(done));
}

work::StoreHealth Service::store_health() {
  parts_->store.probe();
  return parts_->store.health();
}

bool Service::has_busy_thread() const { return parts_->store.is_busy() || parts_->webhook->is_running(); }
work::StoreAccess& Service::store_access() { return parts_->store; }
work::Executor& Service::executor() { return parts_->gate; }

const alerts::Alerts& Service::alerts() const { return parts_->watch.alerts(); }

void Service::subscribe(const std::string& job, std::int64_t after, std::function<void(const jobs::JobEvent&)> on,
                        work::Done<jobs::SubscriptionId> done) {
  parts_->subscriptions.subscribe(job, after, std::move(on), std::move(done));
}
jobs::SubscriptionId Service::subscribe_all(std::function<void(const jobs::JobEvent&)> on) {
  return parts_->subscriptions.subscribe_all(std::move(on));
}
void Service::unsubscribe(jobs::SubscriptionId subscription) { parts_->subscriptions.unsubscribe(subscription); }

void Service::recent_events(views::RecentEvents::Query query, work::Done<views::RecentEvents::Page> done) {
  parts_->recent.page(std::move(query), std::move(done));
}

void Service::set_site(jobs::SiteDocument document, std::optional<std::string> expected, work::Done<Ok> done,
                       const std::string& by) {
  parts_->site.documents().set(std::move(document), std::move(expected), std::move(done), by);
}
void Service::clear_site(work::Done<Ok> done, const std::string& by) {
  parts_->site.documents().clear(std::move(done), by);
}
Result<std::string> Service::site() const { return parts_->site.documents().text(); }
void Service::take_meter_readings(std::vector<jobs::MeterReading> readings, work::Done<Ok> done) {
  const jobs::SiteDocument* const site = parts_->site.documents().current();
  if (site == nullptr) return done(power::no_site());
  const auto view = parts_->site.view();
  std::vector<Watts> most;
  for (const power::SiteDomainView& domain : view->domains) {
    most.push_back(view->unread_jobs > 0 ? model::kNoLimit : domain.most_metered);
  }
  parts_->site.meters().take(*site, most, std::move(readings), std::move(done));
}
void Service::admit(jobs::AdmissionRequest request, work::Done<power::Admission> done) {
  parts_->admissions.admit(std::move(request), std::move(done));
}
void Service::release_admission(const std::string& job, work::Done<Ok> done, const std::string& by) {
  parts_->admissions.release(job, by, std::move(done));
}
Result<power::SitePowerView> Service::site_power() { return parts_->site.view(); }
bool Service::has_site() const { return parts_->site.documents().current() != nullptr; }
bool Service::has_domain(std::string_view name) const {
  const jobs::SiteDocument* const document = parts_->site.documents().current();
  return document != nullptr && document->site.has(name);
}
void Service::site_proof(const power::SiteProofQuery& query, work::Done<power::SiteProof> done) {
  parts_->site_history.proof(query, std::move(done));
}
void Service::site_forecast(double hours, work::Done<power::SiteForecast> done) {
  parts_->forecasts.forecast(hours, std::move(done));
}

// ---- Time

void Service::tick() {
  const double now_s = parts_->clock.now_s();
  parts_->due.perform(now_s);
  parts_->jobs.forget_finished(static_cast<std::size_t>(parts_->options.finished_jobs_in_memory));
  parts_->site_history.go_on(now_s);
  for (const jobs::Alert& alert : parts_->webhook->take_delivered_ends()) parts_->sent_alerts.delivered(alert);
  for (const std::string& line : parts_->webhook->take_lines()) {
    if (parts_->options.log) parts_->options.log("webhook of alerts: " + line);
  }
}

std::optional<double> Service::next_wake() const { return parts_->due.next(); }

void Service::set_limits(const ServiceOptions& options) {
  ServiceOptions& now = parts_->options;
  now.idle_expiry_s = options.idle_expiry_s;
  now.keep_finished_s = options.keep_finished_s;
  now.keep_finished_bytes = options.keep_finished_bytes;
  now.keep_unused_s = options.keep_unused_s;
  now.max_ranks = options.max_ranks;
  now.slowdown = options.slowdown;  // applies from each job's next plan on
  now.planning_budget_s = options.planning_budget_s;
  now.planner_s_per_owner = options.planner_s_per_owner;
  now.profiling_tolerance_pct = options.profiling_tolerance_pct;
  now.profiling_iterations = options.profiling_iterations;
  now.profiling_slowdown_pct = options.profiling_slowdown_pct;
  now.profiling_worst_slowdown_pct = options.profiling_worst_slowdown_pct;
  parts_->watch.set_after(options.alert_after_s);
  parts_->use(options.alert_receiver);
  parts_->characterizations.set_limits(now);
  parts_->upkeep->set_keep(keep_of(now));
  const double now_s = parts_->clock.now_s();
  for (const auto& [id, live] : parts_->jobs.live()) parts_->jobs.set_wake(*live, now_s);
}

void Service::drain(double store_answers_s, work::Done<Ok> kept) {
  parts_->store.set_limit(store_answers_s);
  parts_->reports.stop();
  parts_->windows.stop();
  parts_->waiting.stop();
  std::vector<std::string> jobs;
  for (const auto& [id, live] : parts_->jobs.live()) jobs.push_back(id);
  auto missing = std::make_shared<std::size_t>(jobs.size() + 4);
  auto failed = std::make_shared<std::optional<Error>>();
  const auto one_less = [missing, failed, kept = std::move(kept)](const Result<Ok>& done) {
    if (!done) *failed = done.error();
    if (--*missing > 0 || !kept) return;
    *failed ? kept(**failed) : kept(Ok{});
  };
  for (const std::string& id : jobs) {
    live::LiveJob* const live = parts_->jobs.in_memory(id);
    live != nullptr ? parts_->reports.keep(*live, one_less) : one_less(Ok{});
  }
  parts_->characterizations.stop();
  parts_->history.keep(one_less);
  parts_->site_history.keep(one_less);
  alerts::finish_off_thread(parts_->webhook, parts_->gate, store_answers_s, one_less);
  one_less(Ok{});
}

}  // namespace perseus::service
