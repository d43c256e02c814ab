// Prints the tables of docs/measurements/site.md: a power limit for 1,000 jobs of the published profiles.
//
// usage: site_report [JOBS]
//
// The jobs are of twelve kinds, in equal parts, with 1 to 16 pipelines each, drawn with a fixed seed; the limit is a
// part of what all of them draw with everything at maximum clock. One clock limit: no GPU exceeds the same part of its
// highest clock. One power limit: no computation exceeds the same mean power of a GPU. Equal shares: every job gets
// the same part of its own power at maximum clock, and the best plan within it. Optimum: the allocation.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "planning/baselines/best_of_all.h"
#include "planning/checker/plan_run.h"
#include "planning/model/reference_plans.h"
#include "planning/site/allocate.h"
#include "planning/site/power_curve.h"
#include "planning/site/site_plan.h"

namespace perseus::bench {
namespace {

struct Workload {
  const char* file;
  double blocking_power_w;
  std::vector<int> microbatches;
};
const std::vector<Workload> kWorkloads{{"emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv", 83.64, {12, 24, 48, 96}},
                                       {"emulation/stage_profile/gpt3-175b+a40_bf16.csv", 70.38, {12, 24, 48, 96}},
                                       {"measured/A100_gpt3-xl_pp4.profile_grid.csv", 83.64, {128}},
                                       {"measured/A100_bert-huge-uncased_pp4.profile.csv", 83.64, {32}},
                                       {"measured/A40_bloom-3b_pp8.profile_grid.csv", 70.38, {128}},
                                       {"measured/A40_wide-resnet101_8_pp8.profile_grid.csv", 70.38, {48}}};
constexpr std::array kFractions = {0.9, 0.8, 0.7, 0.65};

struct Kind {
  model::ComputationDag dag;
  model::PowerCurve curve;  ///< of one pipeline
  Watts all_max;
  Seconds full_speed;
  int highest_clock = 0;
};

Result<Kind> kind_of(const Workload& workload, int microbatches) {
  const Result<model::Profile> profile = formats::read_profile_csv((shared_data() / workload.file).string());
  if (!profile) return profile.error();
  const Result<model::Schedule> schedule = model::make_schedule("1f1b", {profile->num_stages(), microbatches, 1});
  if (!schedule) return schedule.error();
  Result<model::ComputationDag> dag =
      model::build_dag(*profile, *schedule, {Watts(workload.blocking_power_w), Seconds(0)});
  if (!dag) return dag.error();
  const Result<model::Frontier> frontier = baselines::plan_best_of_all(*dag, {}, {});
  if (!frontier) return frontier.error();
  const checker::PlanRun all_max = checker::PlanRunner(*dag).run(model::all_maximum_clock(*dag));
  Kind kind{*std::move(dag), {}, all_max.energy / all_max.makespan, frontier->points.back().time, 0};
  kind.curve = site::power_curve_of(*frontier, kind.dag.total_blocking_power(), 1, 0);
  for (const model::ComputationType& type : kind.dag.types) {
    for (const model::Measurement& option : type.options) {
      kind.highest_clock = std::max(kind.highest_clock, option.clock.value());
    }
  }
  return kind;
}

/// Power and rate of one pipeline where every computation takes its highest allowed clock, or its lowest.
template <class Allowed>
model::PowerPoint limited(const Kind& kind, Allowed allowed) {
  std::vector<std::uint16_t> of_type;
  for (const model::ComputationType& type : kind.dag.types) {
    std::size_t option = 0;
    while (option + 1 < type.options.size() && !allowed(type.options[option])) ++option;
    of_type.push_back(static_cast<std::uint16_t>(option));
  }
  model::Plan plan;
  for (const model::Computation& computation : kind.dag.computations) plan.push_back(of_type[computation.type]);
  const checker::PlanRun run = checker::PlanRunner(kind.dag).run(plan);
  return {run.energy / run.makespan, kind.full_speed / run.makespan, 0, false};
}

struct Jobs {
  std::vector<Kind> kinds;
  model::Site site;
  std::vector<std::size_t> kind_of;  ///< per job
  std::vector<double> pipelines;
  Watts all_max;
};

Jobs make_jobs(std::vector<Kind> kinds, int count) {
  Jobs jobs{std::move(kinds), {{{"site", -1}}, {}}, {}, {}, {}};
  std::mt19937_64 engine(7);
  for (int j = 0; j < count; ++j) {
    const std::size_t k = static_cast<std::size_t>(j) % jobs.kinds.size();
    const double pipelines = 1.0 + static_cast<double>(engine() % 16);
    model::SiteJob job{.name = std::to_string(j), .curve = jobs.kinds[k].curve};
    for (model::PowerPoint& point : job.curve.points) point.power = pipelines * point.power;
    job.weight = pipelines * jobs.kinds[k].dag.num_ranks();
    job.all_max = pipelines * jobs.kinds[k].all_max;
    jobs.all_max += job.all_max;
    jobs.site.jobs.push_back(std::move(job));
    jobs.kind_of.push_back(k);
    jobs.pipelines.push_back(pipelines);
  }
  return jobs;
}

/// Throughput where one number limits all GPUs: the largest at which all fit, by bisection.
template <class LimitOf>
double one_limit(const Jobs& jobs, Watts limit, double most, LimitOf limit_of) {
  double low = 0, high = most, best = 0;
  for (int step = 0; step < 30; ++step) {
    const double middle = (low + high) / 2;
    std::vector<model::PowerPoint> points;
    for (const Kind& kind : jobs.kinds) points.push_back(limited(kind, limit_of(kind, middle)));
    Watts used;
    double throughput = 0, full = 0;
    for (std::size_t j = 0; j < jobs.kind_of.size(); ++j) {
      used += jobs.pipelines[j] * points[jobs.kind_of[j]].power;
      throughput += jobs.site.jobs[j].weight * points[jobs.kind_of[j]].rate;
      full += jobs.site.jobs[j].weight;
    }
    (used <= limit ? low : high) = middle;
    if (used <= limit) best = std::max(best, throughput / full);
  }
  return best;
}

void print_row(const Jobs& jobs, double fraction) {
  const Watts limit = fraction * jobs.all_max;
  const double clock = one_limit(jobs, limit, 1, [](const Kind& kind, double part) {
    return [most = part * kind.highest_clock](const model::Measurement& m) { return m.clock.value() <= most; };
  });
  const double cap = one_limit(jobs, limit, 1000, [](const Kind&, double most_w) {
    return [most_w](const model::Measurement& m) { return (m.energy / m.time).value() <= most_w; };
  });
  const std::array at = {fraction};
  const auto throughput = site::throughput_over_watts(jobs.site, model::SiteObjective::throughput, 0, at).front();
  const auto slowdown = site::throughput_over_watts(jobs.site, model::SiteObjective::slowdown, 0, at).front();
  const auto fair = site::throughput_over_watts(jobs.site, model::SiteObjective::max_min, 0, at).front();
  double full = 0;
  for (const model::SiteJob& job : jobs.site.jobs) full += job.weight;
  const double bound =
      site::Allocator(jobs.site, model::SiteObjective::throughput).allocate(std::span(&limit, 1)).bound / full;
  fmt::print("| {:.0f} % | {:.1f} | {:.1f} | {:.2f} | {:.3f} | {:.3f} | {:.2f}, {:.1f} | {:.2f}, {:.1f} |\n",
             100 * fraction, 100 * clock, 100 * cap, 100 * throughput.equal_shares.throughput,
             100 * throughput.best.throughput, 100 * bound, 100 * slowdown.best.throughput,
             100 * slowdown.best.least_rate, 100 * fair.best.throughput, 100 * fair.best.least_rate);
}

int run(int count) {
  std::vector<Kind> kinds;
  for (const Workload& workload : kWorkloads) {
    for (const int microbatches : workload.microbatches) {
      Result<Kind> kind = kind_of(workload, microbatches);
      if (!kind) {
        fmt::print(stderr, "site_report: {}\n", kind.error().message);
        return 1;
      }
      kinds.push_back(*std::move(kind));
    }
  }
  const Jobs jobs = make_jobs(std::move(kinds), count);
  fmt::print("{} jobs.\n\n", count);
  fmt::print(
      "| limit | one clock limit | one power limit | equal shares | optimum | bound | slowdown: total, slowest | "
      "max-min: total, slowest |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const double fraction : kFractions) print_row(jobs, fraction);
  fmt::print("\n| speed of every job | more GPUs |\n| --- | --- |\n");
  for (const double rate : {1.0, 0.99, 0.97, 0.95, 0.9}) {
    fmt::print("| {:.0f} % | {:.1f} % |\n", 100 * rate, 100 * site::headroom_at(jobs.site, rate));
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) { return perseus::bench::run(argc > 1 ? std::atoi(argv[1]) : 1000); }
