#include "server/service/service.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/alerts/alert_message.h"
#include "server/jobs/identity.h"
#include "server/jobs/view_json.h"

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

Service::Service(ServiceOptions given, store::Store& the_store, const Clock& the_clock, work::Executor& executor)
    : options_(std::move(given)),
      clock_(the_clock),
      opened_s_(clock_.now_s()),
      gate(executor),
      store(the_store, clock_, due, gate, options_.store_answers_s,
            [this](const std::string& line) { options_.host->warn(line); }),
      characterizations(options_, store, clock_, due, gate),
      follow_ups(options_, opened_s_),
      jobs(store, clock_, due, *this),
      list(jobs, clock_),
      access(jobs, clock_),
      subscriptions(jobs, store, clock_, due),
      recent(jobs, store, clock_),
      profiles(options_, store, gate, characterizations),
      uploads(options_, jobs, access, gate),
      latencies(options_, jobs, store, clock_, gate),
      shapes(options_, jobs, store, clock_, gate),
      rank_plans(jobs, store, clock_, latencies),
      held_plans(jobs, clock_, due),
      waiting(options_, jobs, clock_, due, access, rank_plans, held_plans),
      frontiers(jobs, clock_, characterizations),
      windows(options_, jobs, store, clock_, gate, characterizations, profiles),
      stragglers(jobs, access, clock_, gate),
      history(store, clock_, due, access, jobs::random_hex_id().substr(0, 16)),
      reports(jobs, clock_, access, windows, stragglers, history),
      registrations(options_, opened_s_, jobs, store, clock_, gate, access, waiting),
      operations(jobs, clock_, access, profiles, recent, site),
      reads(clock_, access, frontiers, characterizations, rank_plans),
      reactions(options_, jobs, clock_, {subscriptions, waiting, frontiers, windows, latencies, shapes, list}),
      site_history(store, clock_, due, jobs::random_hex_id().substr(0, 16)),
      site(options_, store, jobs, clock_, due, gate, *this, site_history),
      forecasts(site, jobs, clock_, due, gate),
      admissions(options_, site, jobs, store, clock_, gate),
      watch(jobs, site, clock_, due, options_.alert_after_s, *this),
      sent_alerts(store, clock_, due, *webhook) {}

std::optional<jobs::EventBody> Service::next_follow_up(live::LiveJob& live, double now_s) {
  return follow_ups.next(live, now_s);
}
std::optional<double> Service::due_s(const live::LiveJob& live, double now_s) const {
  return follow_ups.due_s(live, now_s);
}
void Service::wake(const std::string& id) { reactions.wake(id); }
std::string Service::summary(const live::LiveJob& live) const { return jobs::format_summary(list.summary_of(live)); }
void Service::writing(const live::LiveJob& live, std::int64_t bytes) {
  const auto owner = live.job.spec.facts.find(std::string(live::kOwnerFact));
  if (owner != live.job.spec.facts.end()) stored_bytes->add(owner->second, bytes);
}
void Service::written(const std::vector<live::SequencedEvent>& events) { energy.take(events); }
void Service::committed(live::LiveJob& live, const std::vector<live::SequencedEvent>& events) {
  recent.take(live.job.id, events);
  reactions.committed(live, events);
  site.noticed(live);
}
void Service::shown(live::LiveJob& live) { waiting.answer(live); }
void Service::removed(live::LiveJob& live) { reactions.removed(live); }
void Service::row_changed() {
  if (list_changes != nullptr) list_changes->note(clock_.now_s());
}
void Service::row_erased(const store::JobIndexRow& gone) {
  recent.job_removed(gone);
  subscriptions.job_removed(gone);
}
void Service::changed(const jobs::Alert& alert) {
  options_.host->log(line_of(alert));
  sent_alerts.changed(alert);
}

Status Service::read(store::Store& from) {
  if (Status opened = jobs.open(from); !opened) return opened;
  if (Status read = site.documents().open(from); !read) return read;
  if (Status read = site.limit_changes().open(from); !read) return read;
  if (Status read = site.meters().open(from); !read) return read;
  if (Status read = site.reservations().open(from); !read) return read;
  upkeep.emplace(keep_of(options_), store, clock_, due,
                 [this](const std::string& id, work::Done<Ok> done) { jobs.remove(id, std::move(done)); });
  stored_bytes.emplace(store, due, work::StoredBytes::count(from), clock_.now_s());
  use(options_.alert_receiver);
  return Ok{};
}

void Service::use(const alerts::AlertReceiver& receiver) {
  options_.alert_receiver = receiver;
  webhook->set_receiver(receiver);
  sent_alerts.enable(!receiver.url.empty());
}

Service::~Service() {
  reports.stop();
  windows.stop();
  waiting.stop();
}

Result<std::unique_ptr<Service>> Service::open(ServiceOptions options, store::Store& store, const Clock& clock,
                                               work::Executor& executor) {
  std::unique_ptr<Service> service(new Service(std::move(options), store, clock, executor));
  if (Status opened = service->read(store); !opened) return opened.error();
  return service;
}

// ---- Requests

void Service::job(const std::string& job, work::Done<jobs::JobView> done) {
  reads.job(job, [this, done = std::move(done)](Result<jobs::JobView> view) {
    if (view) view->site = site.job_now(view->header.job);
    done(std::move(view));
  });
}

views::JobList::Owned Service::owned_by(const std::string& token) {
  views::JobList::Owned owned = list.list().owned_by(token);
  const views::JobList::Owned under_way = registrations.under_way(token);
  owned.jobs += under_way.jobs;
  owned.ranks += under_way.ranks;
  return owned;
}

work::StoreHealth Service::store_health() {
  store.probe();
  return store.health();
}

bool Service::has_busy_thread() const { return store.is_busy() || webhook->is_running(); }

// ---- Time

void Service::tick() {
  const double now_s = clock_.now_s();
  due.perform(now_s);
  jobs.forget_finished(static_cast<std::size_t>(options_.finished_jobs_in_memory));
  for (const jobs::Alert& alert : webhook->take_delivered_ends()) sent_alerts.delivered(alert);
  for (const std::string& line : webhook->take_lines()) options_.host->log("webhook of alerts: " + line);
}

void Service::set_limits(const ServiceOptions& options) {
  static_cast<plans::PlanningLimits&>(options_) = options;
  static_cast<ServiceLimits&>(options_) = options;
  watch.set_after(options.alert_after_s);
  use(options.alert_receiver);
  characterizations.options_changed();
  upkeep->set_keep(keep_of(options_));
  const double now_s = clock_.now_s();
  for (const auto& [id, live] : jobs.live()) jobs.set_wake(*live, now_s);
}

void Service::drain(double store_answers_s, work::Done<Ok> kept) {
  store.set_limit(store_answers_s);
  reports.stop();
  windows.stop();
  waiting.stop();
  std::vector<std::string> ids;
  for (const auto& [id, live] : jobs.live()) ids.push_back(id);
  auto missing = std::make_shared<std::size_t>(ids.size() + 4);
  auto failed = std::make_shared<std::optional<Error>>();
  const auto one_less = [missing, failed, kept = std::move(kept)](const Result<Ok>& done) {
    if (!done) *failed = done.error();
    if (--*missing > 0 || !kept) return;
    *failed ? kept(**failed) : kept(Ok{});
  };
  for (const std::string& id : ids) {
    live::LiveJob* const live = jobs.in_memory(id);
    live != nullptr ? reports.keep(*live, one_less) : one_less(Ok{});
  }
  characterizations.stop();
  history.keep(one_less);
  site_history.keep(one_less);
  alerts::finish_off_thread(webhook, gate, store_answers_s, one_less);
  one_less(Ok{});
}

}  // namespace perseus::service
