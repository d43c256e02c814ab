// Time of an allocation of a site's power: 10,000 jobs of 1,000 points each under 421 limits; and of a server's
// division among 1,000 jobs, with and without a window of the meter (docs/measurements/site.md).
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "planning/site/allocate.h"
#include "planning/site/power_over_iteration.h"
#include "server/power/site_shares.h"

namespace perseus::site {
namespace {

constexpr int kRows = 20, kRacksPerRow = 20, kJobs = 10'000, kPoints = 1'000;

/// Concave curves of different shapes.
model::SiteJob job_of(int number, int domain) {
  model::SiteJob job{.name = "job" + std::to_string(number),
                     .curve = {},
                     .weight = 1.0 + number % 64,
                     .least_rate = 0.5,
                     .domain = domain};
  const double exponent = 1.5 + number % 97 / 50.0, most_w = 3000.0 * (1 + number % 64);
  for (int p = 0; p < kPoints; ++p) {
    const double rate = 0.5 + 0.5 * p / (kPoints - 1);
    job.curve.points.push_back({Watts(most_w * (0.3 + 0.7 * std::pow(rate, exponent))), rate, p, false});
  }
  return job;
}

struct LimitedSite {
  model::Site site;
  std::vector<Watts> limits;
};

LimitedSite make_site() {
  LimitedSite limited;
  limited.site.domains.push_back({"site", -1});
  for (int row = 0; row < kRows; ++row) limited.site.domains.push_back({"row" + std::to_string(row), 0});
  for (int rack = 0; rack < kRows * kRacksPerRow; ++rack) {
    limited.site.domains.push_back({"rack" + std::to_string(rack), 1 + rack / kRacksPerRow});
  }
  std::vector<double> most_w(limited.site.domains.size());
  for (int j = 0; j < kJobs; ++j) {
    const int domain = 1 + kRows + j % (kRows * kRacksPerRow);
    limited.site.jobs.push_back(job_of(j, domain));
    for (int d = domain; d >= 0; d = limited.site.domains[d].parent) {
      most_w[d] += limited.site.jobs.back().curve.points.back().power.value();
    }
  }
  for (int d = 0; d < std::ssize(most_w); ++d) limited.limits.push_back((0.75 + 0.03 * (d % 7)) * Watts(most_w[d]));
  limited.limits[0] = 0.8 * Watts(most_w[0]);
  return limited;
}

const LimitedSite& limited_site() {
  static const LimitedSite site = make_site();
  return site;
}

void the_steps_of_all_curves(benchmark::State& state) {
  const LimitedSite& limited = limited_site();
  for (auto _ : state) benchmark::DoNotOptimize(Allocator(limited.site, model::SiteObjective::slowdown));
}
BENCHMARK(the_steps_of_all_curves)->Unit(benchmark::kMillisecond);

void the_first_allocation(benchmark::State& state) {
  const LimitedSite& limited = limited_site();
  for (auto _ : state) {
    state.PauseTiming();
    Allocator allocator(limited.site, model::SiteObjective::slowdown);
    state.ResumeTiming();
    const model::Allocation allocation = allocator.allocate(limited.limits);
    state.counters["gap_pct"] = 100 * (allocation.bound - allocation.value) / std::abs(allocation.bound);
  }
}
BENCHMARK(the_first_allocation)->Unit(benchmark::kMillisecond);

void a_limit_changes(benchmark::State& state) {
  const LimitedSite& limited = limited_site();
  Allocator allocator(limited.site, model::SiteObjective::slowdown);
  std::vector<Watts> limits = limited.limits;
  const auto domain = static_cast<std::size_t>(state.range(0));
  bool lower = false;
  for (auto _ : state) {
    limits[domain] = (lower = !lower) ? 0.93 * limited.limits[domain] : limited.limits[domain];
    benchmark::DoNotOptimize(allocator.allocate(limits));
  }
}
BENCHMARK(a_limit_changes)->Unit(benchmark::kMillisecond)->ArgName("domain")->Arg(0)->Arg(1)->Arg(kRows + 1);

constexpr int kDividedJobs = 1'000, kPlans = 200;

/// GPT-3 175B in 8 stages and 96 microbatches, at plans from maximum clock to the lowest.
std::shared_ptr<const jobs::CharacterizedPipeline> pipeline_of(int number) {
  jobs::CharacterizedPipeline made;
  made.key = std::to_string(number);
  made.dag = *bench::load({"a100_sxm", 8, 96});
  const PowerOverIteration power(made.dag);
  for (int p = 0; p < kPlans; ++p) {
    model::FrontierPoint point;
    for (int i = 0; i < std::ssize(made.dag.computations); ++i) {
      const auto last = static_cast<double>(made.dag.type_of(i).options.size() - 1);
      const double option = last / 2 * (kPlans - 1 - p) / (kPlans - 1) + i % 16 / 16.0;
      point.plan.push_back(static_cast<std::uint16_t>(option));
    }
    point.time = power.of(point.plan).makespan;
    for (int i = 0; i < std::ssize(point.plan); ++i) {
      const model::Measurement& option = made.dag.type_of(i).options[point.plan[i]];
      point.effective_energy += option.energy - made.dag.blocking_power_of(i) * option.time;
    }
    if (!made.frontier.points.empty() && made.frontier.points.back().time <= point.time) continue;
    made.frontier.points.push_back(std::move(point));
  }
  made.all_max_time = made.frontier.points.back().time;
  made.all_max_effective_energy = made.frontier.points.back().effective_energy;
  return std::make_shared<const jobs::CharacterizedPipeline>(std::move(made));
}

/// Under 80 % of all power. Twelve frontiers, or as if every job had one of its own.
power::PoweredSite site_to_divide(bool own_frontiers, std::optional<Seconds> window) {
  static std::vector<std::shared_ptr<const jobs::CharacterizedPipeline>> pipelines;
  while (pipelines.size() < 12) pipelines.push_back(pipeline_of(static_cast<int>(pipelines.size())));
  power::PoweredSite site;
  site.domains.push_back({"site", -1});
  site.windows = {window};
  power::SwingLibrary swings;
  Watts all_max;
  for (int j = 0; j < kDividedJobs; ++j) {
    const auto& pipeline = pipelines[j % pipelines.size()];
    const double copies = 1 + j % 16;
    policies::PowerChoices choices;
    choices.full_speed = pipeline->frontier.points.back().time;
    choices.plans = policies::powers_from({{pipeline.get(), copies, 1, 0}}, choices.full_speed, Seconds(0));
    choices.all_max = choices.plans.front().power;
    choices.pipelines = {{pipeline, copies, 0}};
    power::PoweredJob job;
    job.id = std::to_string(j);
    job.weight = copies;
    job.choices = std::make_shared<const policies::PowerChoices>(std::move(choices));
    job.swing = swings.of(job.choices);
    if (own_frontiers) {
      job.swing = std::make_shared<const power::JobSwing>(
          job.choices,
          std::vector{power::JobSwing::Part{std::make_shared<power::PipelineSwings>(pipeline), copies, 0}});
    }
    job.counted = job.granted = job.all_max();
    all_max += job.all_max();
    site.jobs.push_back(std::move(job));
  }
  site.limits = {0.8 * all_max};
  return site;
}

void a_division(benchmark::State& state, std::optional<Seconds> window) {
  const power::PoweredSite site = site_to_divide(false, window);
  for (auto _ : state) benchmark::DoNotOptimize(power::shares_of(site));
  state.counters["plans"] = static_cast<double>(site.jobs[0].choices->plans.size());
}
BENCHMARK_CAPTURE(a_division, without_a_window, std::optional<Seconds>())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(a_division, with_a_window, Seconds(1))->Unit(benchmark::kMillisecond);

/// Every job has a frontier of its own, and no plan was considered before.
void the_first_division(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    const power::PoweredSite site = site_to_divide(true, Seconds(1));
    state.ResumeTiming();
    benchmark::DoNotOptimize(power::shares_of(site));
  }
}
BENCHMARK(the_first_division)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace perseus::site
