#include "server/metrics/energy_metrics.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

namespace perseus::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using reports::JobFigures;
using Labels = std::vector<prometheus::ClientMetric::Label>;

void add(MetricFamily& family, Labels labels, double value) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  (family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  family.metric.push_back(std::move(metric));
}

Labels labels_of(const JobFigures& job) { return {{"training_job", job.job}, {"name", job.name}}; }

Labels with_source(Labels labels, const char* source) {
  labels.push_back({"source", source});
  return labels;
}
const char* source_of(bool measured) { return measured ? "measured" : "planned"; }

/// Sums of some jobs, by source of the power.
struct Sums {
  std::array<double, 2> power_w{}, all_max_power_w{};  ///< planned, measured
  std::int64_t stragglers = 0, uncontrolled = 0;
  double saved_measured_j = 0, saved_estimated_j = 0;
  live::ClockCounts clocks;
};

template <class Jobs>
Sums sums_of(const Jobs& jobs) {
  Sums sums;
  for (const JobFigures& job : jobs) {
    sums.power_w[job.power.measured ? 1 : 0] += job.power.plan.value();
    sums.all_max_power_w[job.power.measured ? 1 : 0] += job.power.all_max.value();
    sums.stragglers += job.stragglers;
    sums.uncontrolled += job.uncontrolled;
    sums.clocks += job.clocks;
    sums.saved_measured_j += job.saved_measured.value_or(Joules(0)).value();
    sums.saved_estimated_j += job.saved_estimated.value_or(Joules(0)).value();
  }
  return sums;
}

void add_counters(std::vector<MetricFamily>& families, const reports::EnergyCounters& energy) {
  using enum MetricType;
  MetricFamily used{
      "perseus_energy_joules_total", "Energy of the iterations that ranks reported under a plan", Counter, {}};
  MetricFamily saved{"perseus_energy_saved_joules_total", "Energy saved against maximum clock", Counter, {}};
  MetricFamily wasted{"perseus_energy_wasted_joules_total", "Energy used beyond that at maximum clock", Counter, {}};
  MetricFamily iterations{"perseus_iterations_total", "Iterations that ranks reported under a plan", Counter, {}};
  for (const auto& [source, sums] :
       {std::pair("measured", energy.measured()), std::pair("estimated", energy.estimated())}) {
    add(used, {{"source", source}}, sums.used_j);
    add(saved, {{"source", source}}, sums.saved_j);
    add(wasted, {{"source", source}}, sums.wasted_j);
    add(iterations, {{"source", source}}, static_cast<double>(sums.iterations));
  }
  MetricFamily dropped{
      "perseus_plans_dropped_total", "Plans that ranks dropped because iterations were too slow", Counter, {}};
  add(dropped, {}, static_cast<double>(energy.plans_dropped()));
  for (MetricFamily* family : {&used, &saved, &wasted, &iterations, &dropped}) families.push_back(std::move(*family));
}

void add_clock_counters(std::vector<MetricFamily>& families, const live::ClockCounts& clocks) {
  using enum MetricType;
  MetricFamily failed{
      "perseus_clock_failures_total", "Clock requests of ranks that their devices did not carry out", Counter, {}};
  MetricFamily late{
      "perseus_late_clocks_total", "Computations of ranks whose clock came later than plans assume", Counter, {}};
  MetricFamily throttled{
      "perseus_throttled_iterations_total", "Iterations of ranks whose device was throttled", Counter, {}};
  add(failed, {}, static_cast<double>(clocks.failed));
  add(late, {}, static_cast<double>(clocks.late));
  add(throttled, {}, static_cast<double>(clocks.throttled_iterations));
  for (MetricFamily* family : {&failed, &late, &throttled}) families.push_back(std::move(*family));
}

/// Gauges: a rank's process that ends takes its counts with it.
struct JobClockFamilies {
  MetricFamily failed{"perseus_job_clock_failures",
                      "Clock requests that failed since the ranks' processes began",
                      MetricType::Gauge,
                      {}};
  MetricFamily late{"perseus_job_late_clocks",
                    "Computations with a late clock since the ranks' processes began",
                    MetricType::Gauge,
                    {}};
  MetricFamily throttled{"perseus_job_throttled_iterations",
                         "Throttled iterations since the ranks' processes began",
                         MetricType::Gauge,
                         {}};
  void add_job(const Labels& labels, const live::ClockCounts& clocks) {
    add(failed, labels, static_cast<double>(clocks.failed));
    add(late, labels, static_cast<double>(clocks.late));
    add(throttled, labels, static_cast<double>(clocks.throttled_iterations));
  }
};

void add_totals(std::vector<MetricFamily>& families, const service::ServiceCounts& service) {
  using enum MetricType;
  const Sums sums = sums_of(service.jobs_in_training);
  MetricFamily power{"perseus_power_watts", "Power of the jobs in training under their plans", Gauge, {}};
  MetricFamily all_max{
      "perseus_all_max_power_watts", "Power of the same jobs with everything at maximum clock", Gauge, {}};
  for (const bool measured : {false, true}) {
    add(power, {{"source", source_of(measured)}}, sums.power_w[measured ? 1 : 0]);
    add(all_max, {{"source", source_of(measured)}}, sums.all_max_power_w[measured ? 1 : 0]);
  }
  MetricFamily uncontrolled{"perseus_ranks_without_clock_control", "Ranks of live jobs that set no clocks", Gauge, {}};
  add(uncontrolled, {}, static_cast<double>(service.ranks_without_control));
  MetricFamily profiling{"perseus_profiling_window_age_seconds",
                         "Longest time since a job that is being profiled got its last window",
                         Gauge,
                         {}};
  add(profiling, {}, service.profiling_window_age_s);
  for (MetricFamily* family : {&power, &all_max, &uncontrolled, &profiling}) families.push_back(std::move(*family));
}

void add_jobs(std::vector<MetricFamily>& families, std::vector<JobFigures> jobs, std::size_t most_jobs) {
  using enum MetricType;
  std::ranges::sort(jobs, [](const JobFigures& a, const JobFigures& b) {
    return std::tuple(b.power.all_max, a.job) < std::tuple(a.power.all_max, b.job);
  });
  std::vector<JobFigures> others;
  if (jobs.size() > most_jobs) {
    others.assign(jobs.begin() + static_cast<std::ptrdiff_t>(most_jobs), jobs.end());
    jobs.resize(most_jobs);
  }
  MetricFamily power{"perseus_job_power_watts", "Power of the job under its plan", Gauge, {}};
  MetricFamily all_max{
      "perseus_job_all_max_power_watts", "Power of the job with everything at maximum clock", Gauge, {}};
  MetricFamily saved{"perseus_job_saved_joules", "Energy saved since the job began against maximum clock", Gauge, {}};
  MetricFamily iteration{"perseus_job_iteration_seconds", "Time of an iteration under the plan", Gauge, {}};
  MetricFamily slowdown{"perseus_job_slowdown_ratio", "Planned iteration time over that at maximum clock", Gauge, {}};
  MetricFamily point{"perseus_job_frontier_point", "Frontier point in force of pipeline 0", Gauge, {}};
  MetricFamily points{"perseus_job_frontier_points", "Points of the frontier of pipeline 0", Gauge, {}};
  MetricFamily stragglers{"perseus_job_stragglers", "Pipelines of the job that straggle", Gauge, {}};
  MetricFamily uncontrolled{
      "perseus_job_ranks_without_clock_control", "Ranks of the job that set no clocks", Gauge, {}};
  JobClockFamilies clocks;
  for (const JobFigures& job : jobs) {
    const Labels labels = labels_of(job);
    add(power, with_source(labels, source_of(job.power.measured)), job.power.plan.value());
    add(all_max, with_source(labels, source_of(job.power.measured)), job.power.all_max.value());
    if (job.saved_measured) add(saved, with_source(labels, "measured"), job.saved_measured->value());
    if (job.saved_estimated) add(saved, with_source(labels, "estimated"), job.saved_estimated->value());
    add(iteration, with_source(labels, "planned"), job.planned_time.value());
    if (job.measured_time) add(iteration, with_source(labels, "measured"), job.measured_time->value());
    if (job.all_max_time > Seconds(0)) add(slowdown, labels, job.planned_time / job.all_max_time);
    if (job.point >= 0) add(point, labels, job.point);
    if (job.point >= 0) add(points, labels, job.points);
    add(stragglers, labels, static_cast<double>(job.stragglers));
    add(uncontrolled, labels, static_cast<double>(job.uncontrolled));
    clocks.add_job(labels, job.clocks);
  }
  if (!others.empty()) {
    const Sums sums = sums_of(others);
    const Labels labels{{"training_job", "others"}, {"name", ""}};
    for (const bool measured : {false, true}) {
      add(power, with_source(labels, source_of(measured)), sums.power_w[measured ? 1 : 0]);
      add(all_max, with_source(labels, source_of(measured)), sums.all_max_power_w[measured ? 1 : 0]);
    }
    add(saved, with_source(labels, "measured"), sums.saved_measured_j);
    add(saved, with_source(labels, "estimated"), sums.saved_estimated_j);
    add(stragglers, labels, static_cast<double>(sums.stragglers));
    add(uncontrolled, labels, static_cast<double>(sums.uncontrolled));
    clocks.add_job(labels, sums.clocks);
  }
  for (MetricFamily* family : {&power, &all_max, &saved, &iteration, &slowdown, &point, &points, &stragglers,
                               &uncontrolled, &clocks.failed, &clocks.late, &clocks.throttled}) {
    if (!family->metric.empty()) families.push_back(std::move(*family));
  }
}

void add_site(std::vector<MetricFamily>& families, const std::vector<power::SiteDomainView>& domains, int unread_jobs) {
  using enum MetricType;
  MetricFamily limit{"perseus_site_limit_watts", "What the limit of the domain leaves for accelerators now", Gauge, {}};
  MetricFamily granted{"perseus_site_granted_watts", "Sum of the grants to jobs in the domain", Gauge, {}};
  MetricFamily counted{"perseus_site_counted_watts", "The most that jobs in the domain may draw now", Gauge, {}};
  MetricFamily reported{"perseus_site_reported_watts", "Power of the domain's jobs that report energies", Gauge, {}};
  MetricFamily reserved{"perseus_site_reserved_watts", "Reserved for admitted jobs that have not started", Gauge, {}};
  MetricFamily missing{
      "perseus_site_missing_watts", "What the domain lacks for the least rates of its jobs", Gauge, {}};
  MetricFamily unread{"perseus_site_unread_jobs",
                      "Running jobs that this server has not read yet, so that they do not count",
                      Gauge,
                      {}};
  if (!domains.empty()) add(unread, {}, unread_jobs);
  for (const power::SiteDomainView& domain : domains) {
    const Labels labels{{"domain", domain.name}};
    if (domain.limit) add(limit, labels, domain.limit->value());
    add(granted, labels, domain.granted.value());
    add(counted, labels, domain.counted.value());
    add(reported, labels, domain.reported.value());
    add(reserved, labels, domain.reserved.value());
    add(missing, labels, domain.missing.value());
  }
  for (MetricFamily* family : {&limit, &granted, &counted, &reported, &reserved, &missing, &unread}) {
    if (!family->metric.empty()) families.push_back(std::move(*family));
  }
}

}  // namespace

std::vector<MetricFamily> energy_metrics(const service::ServiceCounts& service, std::size_t most_jobs) {
  std::vector<MetricFamily> families;
  add_counters(families, service.energy);
  add_clock_counters(families, service.clocks);
  add_totals(families, service);
  add_jobs(families, service.jobs_in_training, most_jobs);
  add_site(families, service.site, service.site_unread_jobs);
  return families;
}

}  // namespace perseus::metrics
