// Prints the table of docs/emulator.md: time and memory of emulations. Medians of wall and CPU time of the whole run
// (profile, planning, drawing of stragglers, emulation), and of planning alone.
//
//   * 8,192 GPUs, 50 straggler degrees: strong scaling's largest size (12 microbatches on 128 pipelines), all-max and
//     exact;
//   * a day of 1,024 GPUs: 16 pipelines of 96 microbatches, about 2,200 stragglers of all causes but failure.
// Both use the published GPT-3 175B A100 profile (tests/support/shared_data.h finds it), 8 stages of 8 GPUs.
//
// usage: emulator_report [RUNS]
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "simulation/emulator/drawn_stragglers.h"
#include "simulation/emulator/emulate.h"
#include "simulation/emulator/scaling.h"

namespace perseus::bench {
namespace {

model::Scenario published(int microbatches, int pipelines) {
  model::Scenario scenario;
  scenario.tensor_parallel = 8;
  scenario.blocking_power = Watts(83.64);
  scenario.kinds = {{"gpt3-175b", (shared_data() / "emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv").string(),
                     "1f1b", 1, microbatches, pipelines, ""}};
  scenario.methods = {"exact"};
  return scenario;
}

model::RandomStragglers drawn(model::StragglerCause cause, double mean_between_s, double mean_for_s, bool one_stage) {
  model::RandomStragglers random;
  random.hardship.cause = cause;
  if (one_stage) random.hardship.gpus = 1;
  random.one_stage = one_stage;
  random.mean_between = Seconds(mean_between_s);
  random.mean_duration = Seconds(mean_for_s);
  random.least_slowdown = 1.05;
  random.most_slowdown = 1.5;
  return random;
}

[[noreturn]] void die(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  std::exit(66);
}

template <class T>
T needed(Result<T> result) {
  if (!result) die(result.error());
  return *std::move(result);
}

std::string sweep_of_degrees() {
  model::Scenario scenario = published(12, 128);
  scenario.sweep = model::ScalingSweep{{model::Scaling::strong}, {8192}, {}};
  for (int pct = 101; pct <= 150; ++pct) scenario.sweep->slowdowns.push_back(pct / 100.0);
  const model::Profile profile = needed(formats::read_profile_csv(scenario.kinds[0].profile));
  const auto rows = needed(emulator::emulate_scaling(scenario, profile));
  return fmt::format("{} rows, {:.2f} % saved at T'/T 1.2", rows.size(), rows[2 * 19 + 1].savings.total_pct);
}

std::string planning_alone(int microbatches) {
  const model::Scenario scenario = published(microbatches, 16);
  const model::Profile profile = needed(formats::read_profile_csv(scenario.kinds[0].profile));
  const std::vector<emulator::PipelineKind> kinds{needed(emulator::make_kind(profile, scenario.kinds[0], scenario))};
  return fmt::format("{} points", needed(emulator::plan_method("exact", kinds, scenario)).of_kind[0].points.size());
}

std::string a_day() {
  model::Scenario scenario = published(96, 16);
  scenario.duration = Seconds(86400);
  scenario.delivery.notice_delay = Seconds(5);
  scenario.delivery.deploy = Seconds(0.5);
  scenario.random = {drawn(model::StragglerCause::thermal, 600, 300, true),
                     drawn(model::StragglerCause::power, 3600, 900, false),
                     drawn(model::StragglerCause::storage, 3600, 120, false)};
  const model::Profile profile = needed(formats::read_profile_csv(scenario.kinds[0].profile));
  const std::vector<emulator::PipelineKind> kinds{needed(emulator::make_kind(profile, scenario.kinds[0], scenario))};
  const std::vector<model::Straggler> stragglers = needed(emulator::draw_stragglers(scenario, kinds));
  std::vector<Joules> energies;
  std::size_t segments = 0;
  for (const char* method : {"all-max", "exact"}) {
    const emulator::MethodPlans plans = needed(emulator::plan_method(method, kinds, scenario));
    emulator::Emulator emulator(scenario, kinds, plans);
    for (const emulator::Response response : {emulator::Response::default_plans, emulator::Response::look_up}) {
      const emulator::Emulation run = emulator.run(stragglers, response);
      energies.push_back(run.energy_per_iteration());
      segments += run.segments.size();
    }
  }
  return fmt::format("{} stragglers, {} segments, {:.2f} % saved", stragglers.size(), segments,
                     100 * (1 - energies.back() / energies.front()));
}

struct Median {
  double wall_s = 0;
  double cpu_s = 0;
  std::string said;
};

Median median(int runs, const std::function<std::string()>& what) {
  Median result;
  std::vector<double> wall_s, cpu_s;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    result.said = what();
    wall_s.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    cpu_s.push_back(static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC);
  }
  std::ranges::sort(wall_s);
  std::ranges::sort(cpu_s);
  result.wall_s = wall_s[wall_s.size() / 2];
  result.cpu_s = cpu_s[cpu_s.size() / 2];
  return result;
}

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int report(int runs) {
  struct Measured {
    const char* name;
    std::function<std::string()> run;
  };
  const Measured all[] = {
      {"planning 12 microbatches alone", [] { return planning_alone(12); }},
      {"8,192 GPUs x 50 straggler degrees", sweep_of_degrees},
      {"planning 96 microbatches alone", [] { return planning_alone(96); }},
      {"a day of 1,024 GPUs, all-max and exact, each with and without look-up", a_day},
  };
  fmt::print("| what | wall [s] | CPU [s] | peak memory so far [MB] | result |\n| --- | --- | --- | --- | --- |\n");
  for (const Measured& m : all) {
    const Median took = median(runs, m.run);
    fmt::print("| {} | {:.2f} | {:.2f} | {:.0f} | {} |\n", m.name, took.wall_s, took.cpu_s, peak_memory_mb(),
               took.said);
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 3;
  return perseus::bench::report(std::max(1, runs));
}
