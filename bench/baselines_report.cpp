// Prints the tables of docs/baselines.md: EnvPipe against its published numbers, and all methods on the published
// profiles. Needs the published measurements (tests/support/shared_data.h finds them).
//
// usage: baselines_report [FOLDER]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/number.h"
#include "io/formats/profile_csv.h"
#include "planning/baselines/envpipe.h"
#include "planning/baselines/methods.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"
#include "tests/support/published_envpipe.h"
#include "tests/support/published_frontier.h"

namespace perseus {
namespace {

const model::LowerBound no_bound{{{Seconds(0), Joules(0)}}};

struct Case {
  std::string name;
  testing::EmulatedGpu gpu;
  int microbatches;
  model::ComputationDag dag;
};

std::vector<Case> cases(const std::filesystem::path& data) {
  std::vector<Case> all;
  for (const testing::EmulatedGpu& gpu : testing::emulated_gpus()) {
    for (const int microbatches : {12, 24, 48, 96}) {
      all.push_back({fmt::format("{} 8x{}", gpu.name, microbatches), gpu, microbatches,
                     testing::emulated_dag(data, gpu, microbatches)});
    }
  }
  return all;
}

void print_envpipe(const std::filesystem::path& data, const std::vector<Case>& all) {
  fmt::print(
      "EnvPipe, ten times its time and eighty times its energy, against the published rows\n\n"
      "| case | published T [s] | E [J] | paths compared | steps | T [s] | E [J] | deviation of E [%] |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Case& c : all) {
    const auto published = testing::published_envpipe(data, c.gpu.name, c.microbatches);
    PERSEUS_CHECK(published.has_value(), "a row of every case");
    for (const double unit_s : {0.0, 0.0001, 0.001}) {
      const baselines::EnvPipeRun run =
          baselines::plan_envpipe(c.dag, {.max_steps = 10000, .unit_time = Seconds(unit_s)}).value();
      const model::FrontierPoint point = baselines::judge(c.dag, {run.plan}, no_bound).points.front();
      const double energy_j = 80 * point.energy.value();
      const double off_pct = 100 * (energy_j / published->energy_j - 1);
      fmt::print("| {} | {:.3f} | {:.3f} | {} | {} | {:.3f} | {:.3f} | {} |\n", c.name, published->iteration_time_s,
                 published->energy_j, unit_s == 0 ? "as measured" : fmt::format("in {:g} ms", 1000 * unit_s), run.steps,
                 10 * point.time.value(), energy_j,
                 std::abs(off_pct) < 5e-6 ? "0.00000" : fmt::format("{:+.5f}", off_pct));
    }
  }
}

void print_methods(const std::vector<Case>& all) {
  fmt::print(
      "\nEvery method's fastest point, and what the exact planner needs at that time\n\n"
      "| case | method | points | fastest T [s] | slower than all-max [%] | saves against all-max [%] | exact saves at "
      "that T [%] | above the bound [%] |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Case& c : all) {
    const model::Frontier exact = planner::plan_exact(c.dag);
    const model::FrontierPoint all_max =
        baselines::judge(c.dag, {model::all_maximum_clock(c.dag)}, exact.bound).points.front();
    const auto print = [&](std::string_view method, const model::Frontier& frontier) {
      const model::FrontierPoint& p = frontier.points.back();
      const Joules ours =
          planner::look_up(exact, p.time * (1 + 1e-12)).effective_energy + c.dag.total_blocking_power() * p.time;
      const auto saved = [&](Joules energy) { return 100 * (1 - energy / all_max.energy); };
      fmt::print("| {} | {} | {} | {:.4f} | {:+.2f} | {:.2f} | {:.2f} | {:.2f} |\n", c.name, method,
                 frontier.points.size(), p.time.value(), 100 * (p.time / all_max.time - 1), saved(p.energy),
                 saved(ours), std::max(0.0, p.gap_pct()));
    };
    print("exact", exact);
    for (const baselines::BaselineMethod& method : baselines::baseline_methods()) {
      print(method.name, baselines::judge(c.dag, method.plans(c.dag)->plans, exact.bound));
    }
  }
}

struct Measured {
  std::string name;
  int stages;
  int microbatches;
};

/// EnvPipe's final plan in its measured run: clock by (stage, instruction, microbatch).
using Clocks = std::map<std::tuple<int, std::string, int>, int>;

Clocks clocks_that_ran(const std::filesystem::path& data, const Measured& measured) {
  constexpr std::string_view envpipe_final = "102";
  const std::string text = formats::read_file((data / "measured" / (measured.name + ".ops.csv.gz")).string()).value();
  formats::CsvReader reader(text, measured.name);
  Clocks clocks;
  while (reader.next().value()) {
    const auto& f = reader.fields();  // plan,stage,op,instruction,microbatch,frequency_mhz,time_s
    if (f[0] != envpipe_final) continue;
    clocks[{*formats::number_in<int>(f[1]), std::string(f[3]), *formats::number_in<int>(f[4])}] =
        *formats::number_in<int>(f[5]);
  }
  return clocks;
}

/// The option whose clock is closest.
int option_near(const model::ComputationType& type, int clock_mhz) {
  const auto distance = [&](const model::Measurement& m) { return std::abs(m.clock.value() - clock_mhz); };
  return static_cast<int>(std::ranges::min_element(type.options, {}, distance) - type.options.begin());
}

void print_measured(const std::filesystem::path& data) {
  fmt::print(
      "\nEnvPipe on profiles rebuilt from real runs, against the plan of the published runs (102); T and "
      "computations'\n"
      "energy of both plans by that profile\n\n"
      "| workload | ours ends | same clock [%] | mean distance [MHz] | published T [s] | our T [s] | published energy "
      "[J] "
      "| our energy [J] |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Measured& measured : {Measured{"A100_gpt3-xl_pp4", 4, 128}, Measured{"A40_bloom-3b_pp8", 8, 128},
                                   Measured{"A40_wide-resnet101_8_pp8", 8, 48}}) {
    const auto profile =
        formats::read_profile_csv((data / "measured" / (measured.name + ".profile_grid.csv")).string());
    const auto schedule = model::make_schedule("1f1b", {measured.stages, measured.microbatches, 1});
    const model::ComputationDag dag = model::build_dag(profile.value(), schedule.value(), {}).value();
    const Clocks ran = clocks_that_ran(data, measured);
    const baselines::EnvPipeRun ours = baselines::plan_envpipe(dag).value();
    model::Plan published(ours.plan.size());
    int same = 0;
    double distance_mhz = 0;
    for (int i = 0; i < static_cast<int>(published.size()); ++i) {
      const model::ComputationType& type = dag.type_of(i);
      const int clock = ran.at({type.stage, type.instruction, dag.computations[i].microbatch});
      published[i] = static_cast<model::Plan::value_type>(option_near(type, clock));
      const int difference = std::abs(clock - type.options[ours.plan[i]].clock.value());
      same += difference == 0;
      distance_mhz += difference;
    }
    const model::FrontierPoint theirs = baselines::judge(dag, {published}, no_bound).points.front();
    const model::FrontierPoint point = baselines::judge(dag, {ours.plan}, no_bound).points.front();
    const auto count = static_cast<double>(published.size());
    fmt::print("| {} | {} | {:.1f} | {:.0f} | {:.3f} | {:.3f} | {:.0f} | {:.0f} |\n", measured.name,
               fmt::format("{} after {} steps", ours.end == baselines::EnvPipeEnd::stuck ? "stuck" : "envelope reached",
                           ours.steps),
               100 * same / count, distance_mhz / count, theirs.time.value(), point.time.value(), theirs.energy.value(),
               point.energy.value());
  }
}

}  // namespace
}  // namespace perseus

int main(int argc, char** argv) {
  const char* set = std::getenv("PERSEUS_SHARED_DATA");
  const std::filesystem::path data = argc > 1 ? argv[1] : set != nullptr ? set : PERSEUS_SHARED_DATA;
  if (!std::filesystem::is_directory(data)) {
    fmt::print(stderr, "baselines_report: no published measurements in {}\n", data.string());
    return 1;
  }
  const auto all = perseus::cases(data);
  perseus::print_envpipe(data, all);
  perseus::print_measured(data);
  perseus::print_methods(all);
}
