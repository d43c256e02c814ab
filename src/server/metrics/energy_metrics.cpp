#include "server/metrics/energy_metrics.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

namespace perseus::metrics {
namespace {

using reports::JobFigures;
using Labels = MetricFamilies::Labels;

Labels with_source(Labels labels, const char* source) {
  labels.push_back({"source", source});
  return labels;
}

/// Of a job, or of several; nothing: not known.
struct Sums {
  std::array<std::optional<double>, 2> power_w{}, all_max_power_w{};  ///< planned, measured
  std::optional<double> saved_measured_j, saved_estimated_j;
  std::int64_t stragglers = 0, uncontrolled = 0;
  live::ClockCounts clocks;

  static Sums zero() { return {{0, 0}, {0, 0}, 0, 0, 0, 0, {}}; }
  void add(const JobFigures& job) {
    add(power_w[job.power.measured ? 1 : 0], job.power.plan);
    add(all_max_power_w[job.power.measured ? 1 : 0], job.power.all_max);
    if (job.saved_measured) add(saved_measured_j, *job.saved_measured);
    if (job.saved_estimated) add(saved_estimated_j, *job.saved_estimated);
    stragglers += job.stragglers;
    uncontrolled += job.uncontrolled;
    clocks += job.clocks;
  }

 private:
  template <class Quantity>
  static void add(std::optional<double>& sum, Quantity value) {
    sum = sum.value_or(0) + value.value();
  }
};

void add_power(MetricFamilies& to, const Sums& sums, const char* power, const char* power_help, const char* all_max,
               const char* all_max_help, const Labels& labels) {
  for (const bool measured : {false, true}) {
    const char* const source = measured ? "measured" : "planned";
    if (const auto& w = sums.power_w[measured ? 1 : 0]) to.gauge(power, power_help, *w, with_source(labels, source));
    if (const auto& w = sums.all_max_power_w[measured ? 1 : 0]) {
      to.gauge(all_max, all_max_help, *w, with_source(labels, source));
    }
  }
}

void add_counters(MetricFamilies& to, const reports::EnergyCounters& energy, const live::ClockCounts& clocks) {
  for (const auto& [source, sums] :
       {std::pair("measured", energy.measured()), std::pair("estimated", energy.estimated())}) {
    const Labels labels{{"source", source}};
    to.counter("perseus_energy_joules_total", "Energy of the iterations that ranks reported under a plan", sums.used_j,
               labels);
    to.counter("perseus_energy_saved_joules_total", "Energy saved against maximum clock", sums.saved_j, labels);
    to.counter("perseus_energy_wasted_joules_total", "Energy used beyond that at maximum clock", sums.wasted_j, labels);
    to.counter("perseus_iterations_total", "Iterations that ranks reported under a plan", sums.iterations, labels);
  }
  to.counter("perseus_plans_dropped_total", "Plans that ranks dropped because iterations were too slow",
             energy.plans_dropped());
  to.counter("perseus_clock_failures_total", "Clock requests of ranks that their devices did not carry out",
             clocks.failed);
  to.counter("perseus_late_clocks_total", "Computations of ranks whose clock came later than plans assume",
             clocks.late);
  to.counter("perseus_throttled_iterations_total", "Iterations of ranks whose device was throttled",
             clocks.throttled_iterations);
}

void add_totals(MetricFamilies& to, const service::ServiceCounts& service) {
  Sums sums = Sums::zero();
  for (const JobFigures& job : service.jobs_in_training) sums.add(job);
  add_power(to, sums, "perseus_power_watts", "Power of the jobs in training under their plans",
            "perseus_all_max_power_watts", "Power of the same jobs with everything at maximum clock", {});
  to.gauge("perseus_ranks_without_clock_control", "Ranks of live jobs that set no clocks",
           service.ranks_without_control);
  to.gauge("perseus_profiling_window_age_seconds",
           "Longest time since a job that is being profiled got its last window", service.profiling_window_age_s);
}

/// Of a job, or of the others. The clocks are gauges: a rank's process that ends takes its counts with it.
void add_sums(MetricFamilies& to, const Sums& sums, const Labels& labels) {
  add_power(to, sums, "perseus_job_power_watts", "Power of the job under its plan", "perseus_job_all_max_power_watts",
            "Power of the job with everything at maximum clock", labels);
  for (const auto& [source, saved_j] :
       {std::pair("measured", sums.saved_measured_j), std::pair("estimated", sums.saved_estimated_j)}) {
    if (!saved_j) continue;
    to.gauge("perseus_job_saved_joules", "Energy saved since the job began against maximum clock", *saved_j,
             with_source(labels, source));
  }
  to.gauge("perseus_job_stragglers", "Pipelines of the job that straggle", sums.stragglers, labels);
  to.gauge("perseus_job_ranks_without_clock_control", "Ranks of the job that set no clocks", sums.uncontrolled, labels);
  to.gauge("perseus_job_clock_failures", "Clock requests that failed since the ranks' processes began",
           sums.clocks.failed, labels);
  to.gauge("perseus_job_late_clocks", "Computations with a late clock since the ranks' processes began",
           sums.clocks.late, labels);
  to.gauge("perseus_job_throttled_iterations", "Throttled iterations since the ranks' processes began",
           sums.clocks.throttled_iterations, labels);
}

void add_plan(MetricFamilies& to, const JobFigures& job, const Labels& labels) {
  const char* const iteration = "perseus_job_iteration_seconds";
  const char* const iteration_help = "Time of an iteration under the plan";
  to.gauge(iteration, iteration_help, job.planned_time.value(), with_source(labels, "planned"));
  if (job.measured_time) {
    to.gauge(iteration, iteration_help, job.measured_time->value(), with_source(labels, "measured"));
  }
  if (job.all_max_time > Seconds(0)) {
    to.gauge("perseus_job_slowdown_ratio", "Planned iteration time over that at maximum clock",
             job.planned_time / job.all_max_time, labels);
  }
  if (job.point < 0) return;
  to.gauge("perseus_job_frontier_point", "Frontier point in force of pipeline 0", job.point, labels);
  to.gauge("perseus_job_frontier_points", "Points of the frontier of pipeline 0", job.points, labels);
}

void add_jobs(MetricFamilies& to, std::vector<JobFigures> jobs, std::size_t most_jobs) {
  std::ranges::sort(jobs, [](const JobFigures& a, const JobFigures& b) {
    return std::tuple(b.power.all_max, a.job) < std::tuple(a.power.all_max, b.job);
  });
  Sums others = Sums::zero();
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    if (k >= most_jobs) {
      others.add(jobs[k]);
      continue;
    }
    const Labels labels{{"training_job", jobs[k].job}, {"name", jobs[k].name}};
    Sums own;
    own.add(jobs[k]);
    add_sums(to, own, labels);
    add_plan(to, jobs[k], labels);
  }
  if (jobs.size() > most_jobs) add_sums(to, others, {{"training_job", "others"}, {"name", ""}});
}

void add_site(MetricFamilies& to, const std::vector<power::SiteDomainView>& domains, int unread_jobs) {
  for (const power::SiteDomainView& domain : domains) {
    const Labels labels{{"domain", domain.name}};
    if (domain.limit) {
      to.gauge("perseus_site_limit_watts", "What the limit of the domain leaves for accelerators now",
               domain.limit->value(), labels);
    }
    to.gauge("perseus_site_granted_watts", "Sum of the grants to jobs in the domain", domain.granted.value(), labels);
    to.gauge("perseus_site_counted_watts", "The most that jobs in the domain may draw now", domain.counted.value(),
             labels);
    to.gauge("perseus_site_reported_watts", "Power of the domain's jobs that report energies", domain.reported.value(),
             labels);
    to.gauge("perseus_site_reserved_watts", "Reserved for admitted jobs that have not started", domain.reserved.value(),
             labels);
    to.gauge("perseus_site_missing_watts", "What the domain lacks for the least rates of its jobs",
             domain.missing.value(), labels);
  }
  if (domains.empty()) return;
  to.gauge("perseus_site_unread_jobs", "Running jobs that this server has not read yet, so that they do not count",
           unread_jobs);
}

}  // namespace

void add_energy_metrics(MetricFamilies& to, const service::ServiceCounts& service, std::size_t most_jobs) {
  add_counters(to, service.energy, service.clocks);
  add_totals(to, service);
  add_jobs(to, service.jobs_in_training, most_jobs);
  add_site(to, service.site, service.site_unread_jobs);
}

}  // namespace perseus::metrics
