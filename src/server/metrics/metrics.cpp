#include "server/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include <cmath>

#include "server/metrics/energy_metrics.h"
#include "server/metrics/process_metrics.h"

namespace perseus::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

const prometheus::Histogram::BucketBoundaries kRequestBuckets_s{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600};
const prometheus::Histogram::BucketBoundaries kIoBuckets_s{1e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5};

template <class Number>
MetricFamily one(MetricType type, const char* name, const char* help, Number number) {
  prometheus::ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = static_cast<double>(number);
  return {std::string("perseus_") + name, help, type, {metric}};
}

prometheus::ClientMetric gauge(std::vector<prometheus::ClientMetric::Label> labels, std::int64_t value) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = static_cast<double>(value);
  return metric;
}

MetricFamily planning_queue(const service::ServiceCounts& service) {
  MetricFamily family{
      "perseus_planning_queue", "Pipelines in the planning queue, waiting or running", MetricType::Gauge, {}};
  for (const auto& [kind, waiting, running] : service.planning) {
    family.metric.push_back(gauge({{"kind", std::string(kind)}, {"state", "waiting"}}, waiting));
    family.metric.push_back(gauge({{"kind", std::string(kind)}, {"state", "running"}}, running));
  }
  return family;
}

MetricFamily jobs_by_state(const service::ServiceCounts& service) {
  MetricFamily family{"perseus_jobs", "Jobs in the database, by state", MetricType::Gauge, {}};
  for (const auto& [state, jobs] : service.jobs_by_state) {
    family.metric.push_back(gauge({{"state", std::string(state)}}, jobs));
  }
  return family;
}

MetricFamily alerts(const service::ServiceCounts& service) {
  MetricFamily family{"perseus_alerts", "Raised alerts, by kind", MetricType::Gauge, {}};
  for (std::size_t kind = 0; kind < service.alerts.size(); ++kind) {
    family.metric.push_back(gauge({{"alert", std::string(jobs::kAlertNames[kind])}}, service.alerts[kind]));
  }
  return family;
}

void add_webhook(std::vector<MetricFamily>& families, const alerts::WebhookCounts& webhook) {
  using enum MetricType;
  families.push_back(
      one(Counter, "alert_webhook_sent_total", "Messages that the webhook's receiver took", webhook.sent));
  families.push_back(one(Counter, "alert_webhook_failed_total", "Calls of the webhook that failed", webhook.failed));
  families.push_back(
      one(Counter, "alert_webhook_dropped_total", "Messages of the webhook that were given up", webhook.dropped));
  families.push_back(one(Gauge, "alert_webhook_waiting", "Messages that wait for the webhook", webhook.waiting));
}

MetricFamily commit_times(const store::CommitCounts& commits) {
  prometheus::ClientMetric metric;
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < commits.took.size(); ++i) {
    cumulative += static_cast<std::uint64_t>(commits.took[i]);
    const bool last = i == store::CommitCounts::kUpTo_s.size();
    metric.histogram.bucket.push_back({cumulative, last ? INFINITY : store::CommitCounts::kUpTo_s[i]});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = commits.seconds;
  return {
      "perseus_store_commit_seconds", "Duration of database commits that succeeded", MetricType::Histogram, {metric}};
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
  using enum MetricType;
  std::vector<MetricFamily> families{
      one(Gauge, "jobs_in_memory", "Jobs whose state is in memory", service.jobs_in_memory),
      one(Gauge, "waiting_ranks", "Ranks that wait for a plan", service.waiting_ranks),
      one(Gauge, "subscriptions", "Subscriptions to the events of jobs inside the server", service.subscriptions),
      one(Gauge, "stragglers_in_force", "Stragglers in force", service.stragglers_in_force),
      one(Counter, "plans_deployed_total", "Plans deployed", service.plans_deployed),
      one(Counter, "characterizations_total", "Frontiers computed", service.characterizations),
      one(Counter, "characterizations_failed_total", "Frontiers that could not be computed",
          service.characterizations_failed),
      one(Gauge, "characterizations_running", "Pipelines that are planned or wait for planning",
          service.characterizing),
      planning_queue(service),
      one(Counter, "planning_seconds_total", "CPU seconds spent on planning", service.planner_s),
      one(Counter, "planning_stopped_total", "Planning runs stopped because their results were not needed",
          service.plannings_stopped),
      jobs_by_state(service),
      one(Gauge, "ranks", "Expected ranks of live jobs", service.ranks),
      alerts(service),
      commit_times(service.commits),
      one(Counter, "store_commits_failed_total", "Database commits that failed", service.commits.failed),
  };
  add_webhook(families, service.webhook);
  for (MetricFamily& family : energy_metrics(service, most_jobs)) families.push_back(std::move(family));
  if (service.database_bytes) {
    families.push_back(one(Gauge, "database_bytes", "Size of the database on disk", *service.database_bytes));
  }
  if (http) {
    for (const MetricFamily& family : {
             one(Gauge, "connections", "Open connections", http->connections),
             one(Gauge, "connections_waiting", "Connections with a request that is not answered yet", http->waiting),
             one(Counter, "connections_total", "Connections accepted", http->accepted),
             one(Counter, "connections_turned_away_total", "Connections refused because of the limit of the server",
                 http->turned_away),
             one(Counter, "connections_turned_away_of_address_total",
                 "Connections refused because of the limit per address", http->turned_away_of_address),
             one(Gauge, "event_streams", "Open event streams", http->streams),
             one(Counter, "connections_timed_out_total", "Connections closed because the client was too slow",
                 http->timed_out),
         }) {
      families.push_back(family);
    }
  }
  if (http && http->certificate_end_s) {
    families.push_back(
        one(Gauge, "certificate_end_seconds", "End of the TLS certificate, Unix time", *http->certificate_end_s));
  }
  for (MetricFamily& family : process_metrics(version)) families.push_back(std::move(family));
  for (const auto* histograms : {&requests_, &io_thread_}) {
    for (MetricFamily& family : histograms->Collect()) families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace perseus::metrics
