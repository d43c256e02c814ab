// Time of an allocation of a site's power: 10,000 jobs of 1,000 points each under 421 limits
// (docs/measurements/site.md).
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "planning/site/allocate.h"

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

}  // namespace
}  // namespace perseus::site
