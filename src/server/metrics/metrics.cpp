#include "server/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include <cmath>

#include "server/metrics/energy_metrics.h"
#include "server/metrics/process_metrics.h"

namespace perseus::metrics {
namespace {

const prometheus::Histogram::BucketBoundaries kRequestBuckets_s{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600};
const prometheus::Histogram::BucketBoundaries kIoBuckets_s{1e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5};

prometheus::MetricFamily commit_times(const store::CommitCounts& commits) {
  prometheus::ClientMetric metric;
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < commits.took.size(); ++i) {
    cumulative += static_cast<std::uint64_t>(commits.took[i]);
    const bool last = i == store::CommitCounts::kUpTo_s.size();
    metric.histogram.bucket.push_back({cumulative, last ? INFINITY : store::CommitCounts::kUpTo_s[i]});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = commits.seconds;
  return {"perseus_store_commit_seconds",
          "Duration of database commits that succeeded",
          prometheus::MetricType::Histogram,
          {metric}};
}

}  // namespace

void Metrics::served(const http::ServedRequest& request) {
  prometheus::Histogram*& histogram = by_route_[{request.route, request.status}];
  if (histogram == nullptr) {
    const std::string route(request.route.empty() ? "other" : request.route);
    histogram = &requests_.Add({{"route", route}, {"status", std::to_string(request.status)}}, kRequestBuckets_s);
  }
  histogram->Observe(request.took_s);
}

void Metrics::on_io_thread(std::string_view what, double seconds) {
  prometheus::Histogram*& histogram = by_task_[what];
  if (histogram == nullptr) histogram = &io_thread_.Add({{"task", std::string(what)}}, kIoBuckets_s);
  histogram->Observe(seconds);
}

std::string Metrics::text(const std::string& version, const service::ServiceCounts& service,
                          const std::optional<http::HttpServerCounts>& http, std::size_t most_jobs) const {
  MetricFamilies to;
  to.gauge("perseus_jobs_in_memory", "Jobs whose state is in memory", service.jobs_in_memory);
  to.gauge("perseus_waiting_ranks", "Ranks that wait for a plan", service.waiting_ranks);
  to.gauge("perseus_subscriptions", "Subscriptions to the events of jobs inside the server", service.subscriptions);
  to.gauge("perseus_stragglers_in_force", "Stragglers in force", service.stragglers_in_force);
  to.counter("perseus_plans_deployed_total", "Plans deployed", service.plans_deployed);
  to.counter("perseus_characterizations_total", "Frontiers computed", service.characterizations);
  to.counter("perseus_characterizations_failed_total", "Frontiers that could not be computed",
             service.characterizations_failed);
  to.gauge("perseus_characterizations_running", "Pipelines that are planned or wait for planning",
           service.characterizing);
  for (const auto& [kind, waiting, running] : service.planning) {
    for (const auto& [state, count] : {std::pair("waiting", waiting), std::pair("running", running)}) {
      to.gauge("perseus_planning_queue", "Pipelines in the planning queue, waiting or running", count,
               {{"kind", std::string(kind)}, {"state", state}});
    }
  }
  to.counter("perseus_planning_seconds_total", "CPU seconds spent on planning", service.planner_s);
  to.counter("perseus_planning_stopped_total", "Planning runs stopped because their results were not needed",
             service.plannings_stopped);
  for (const auto& [state, jobs] : service.jobs_by_state) {
    to.gauge("perseus_jobs", "Jobs in the database, by state", jobs, {{"state", std::string(state)}});
  }
  to.gauge("perseus_ranks", "Expected ranks of live jobs", service.ranks);
  for (std::size_t kind = 0; kind < service.alerts.size(); ++kind) {
    to.gauge("perseus_alerts", "Raised alerts, by kind", service.alerts[kind],
             {{"alert", std::string(jobs::kAlertTable[kind].name)}});
  }
  to.add(commit_times(service.commits));
  to.counter("perseus_store_commits_failed_total", "Database commits that failed", service.commits.failed);
  const alerts::WebhookCounts& webhook = service.webhook;
  to.counter("perseus_alert_webhook_sent_total", "Messages that the webhook's receiver took", webhook.sent);
  to.counter("perseus_alert_webhook_failed_total", "Calls of the webhook that failed", webhook.failed);
  to.counter("perseus_alert_webhook_dropped_total", "Messages of the webhook that were given up", webhook.dropped);
  to.gauge("perseus_alert_webhook_waiting", "Messages that wait for the webhook", webhook.waiting);
  add_energy_metrics(to, service, most_jobs);
  if (service.database_bytes) {
    to.gauge("perseus_database_bytes", "Size of the database on disk", *service.database_bytes);
  }
  if (http) {
    to.gauge("perseus_connections", "Open connections", http->connections);
    to.gauge("perseus_connections_waiting", "Connections with a request that is not answered yet", http->waiting);
    to.counter("perseus_connections_total", "Connections accepted", http->accepted);
    to.counter("perseus_connections_turned_away_total", "Connections refused because of the limit of the server",
               http->turned_away);
    to.counter("perseus_connections_turned_away_of_address_total",
               "Connections refused because of the limit per address", http->turned_away_of_address);
    to.gauge("perseus_event_streams", "Open event streams", http->streams);
    to.counter("perseus_connections_timed_out_total", "Connections closed because the client was too slow",
               http->timed_out);
    if (http->certificate_end_s) {
      to.gauge("perseus_certificate_end_seconds", "End of the TLS certificate, Unix time", *http->certificate_end_s);
    }
  }
  add_process_metrics(to, version);
  for (const auto* histograms : {&requests_, &io_thread_}) {
    for (prometheus::MetricFamily& family : histograms->Collect()) to.add(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(to.all());
}

}  // namespace perseus::metrics
