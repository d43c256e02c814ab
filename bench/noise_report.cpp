// Prints the tables of docs/measurements/noise.md: claims and losses of plans from noisy profiles. Needs the published
// measurements.
//
// usage: noise_report [SEEDS [PROFILE [NOISE_PCT [SAMPLES [MICROBATCHES]]]]]
//   SEEDS: their number, or the first and last as 11-20; PROFILE may be ''. Default: 5 seeds of all profiles, noises
//   and samples, 24 microbatches.
//
// A published profile is the truth. The report measures its times and energies once, three or ten times with
// independent normal noise. It plans from the means, unchanged ("believed") and pooled
// (server/profiling/pooled_profile.h), and runs the plan that is, by the measurements, no slower than everything at the
// highest clock on the truth. Medians over seeds: time and energy of the plan above its claims, its time above the true
// highest clock's, and its energy above that of the true profile's plan for the time that it really took. "saving off":
// the claimed saving minus the true one of the same plan, in points, with the share of seeds that claim too much;
// "within bars": of one and two claimed standard deviations, of which "bar" is the first one of the time; "reference
// off": the claimed energy of everything at the highest clock against the true one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "base/median.h"
#include "bench/cases.h"
#include "planning/baselines/best_of_all.h"
#include "planning/model/build_dag.h"
#include "planning/model/default_plan.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/realize.h"
#include "server/profiling/curve_family.h"
#include "server/profiling/expected_frontier.h"
#include "server/profiling/pooled_profile.h"
#include "tests/support/plan_loss.h"

namespace perseus::bench {
namespace {

struct Truth {
  const char* name;
  const char* file;
  double blocking_power_w;
};
constexpr Seconds kNoBar{1e-9};  ///< what is that near is exact
constexpr Truth kTruths[] = {{"A100 GPT-3 175B", "emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv", 83.64},
                             {"A40 GPT-3 175B", "emulation/stage_profile/gpt3-175b+a40_bf16.csv", 70.38},
                             {"A100_gpt3-xl_pp4", "measured/A100_gpt3-xl_pp4.profile_grid.csv", 83.64},
                             {"A40_bloom-3b_pp8", "measured/A40_bloom-3b_pp8.profile_grid.csv", 70.38},
                             {"A40_wide-resnet_pp8", "measured/A40_wide-resnet101_8_pp8.profile_grid.csv", 70.38}};

model::Profile measured(const model::Profile& truth, double noise, int samples, std::mt19937_64& engine) {
  model::Profile profile = truth;
  const auto measure = [&](double value, double& stddev) {
    double sum = 0, squares = 0;
    for (int i = 0; i < samples; ++i) {
      const double sample = value * (1 + noise * profiling::standard_normal(engine));
      sum += sample;
      squares += sample * sample;
    }
    const double mean = sum / samples;
    stddev = samples > 1 ? std::sqrt(std::max(0.0, (squares - samples * mean * mean) / (samples - 1))) : 0;
    return mean;
  };
  for (model::ProfileEntry& entry : profile.entries) {
    for (model::Measurement& m : entry.measurements) {
      double time_stddev = 0, energy_stddev = 0;
      m.time = Seconds(measure(m.time.value(), time_stddev));
      m.energy = Joules(measure(m.energy.value(), energy_stddev));
      m.time_stddev = Seconds(time_stddev);
      m.energy_stddev = Joules(energy_stddev);
      m.samples = samples;
    }
  }
  return profile;
}

struct Verdict {
  std::vector<double> later_pct, dearer_pct, slower_pct, lost_pct, noise_pct, saving_off_pct, reference_off_pct;
  /// The real time and saving from the claimed ones, and one standard deviation of that time.
  std::vector<double> time_off_sd, saving_off_sd, bar_pct;
  double cpu_ms = 0;
};

class Judge {
 public:
  Judge(const Truth& truth, const model::Profile& profile, int microbatches)
      : schedule_(model::make_schedule("1f1b", {profile.num_stages(), microbatches, 1}).value()),
        costs_{Watts(truth.blocking_power_w), Seconds(0)},
        dag_(model::build_dag(profile, schedule_, costs_).value()),
        best_(baselines::plan_best_of_all(dag_).value()),
        highest_(planner::Realizer(dag_).realize(model::all_maximum_clock(dag_))) {}

  /// Plans as `perseus plan` does.
  void judge(const model::Profile& believed, const std::vector<model::Profile>& draws, Verdict& verdict) const {
    const model::ComputationDag dag = model::build_dag(believed, schedule_, costs_).value();
    profiling::DrawnTypes drawn;
    for (const model::Profile& draw : draws) drawn.push_back(model::build_dag(draw, schedule_, costs_).value().types);
    StopCheck never;
    const model::Frontier frontier =
        profiling::expected_frontier(dag, drawn, baselines::plan_best_of_all(dag).value(), never).value();
    const planner::Realizer::Outcome at_highest = planner::Realizer(dag).realize(model::all_maximum_clock(dag));
    const Seconds t_max = at_highest.time + frontier.maximum_clock_noise.lateness;
    const model::FrontierPoint& claimed = frontier.points[model::default_point(frontier, t_max)];
    // All clocks of a profile are options, so a plan means the same in both DAGs.
    const planner::Realizer::Outcome real = planner::Realizer(dag_).realize(claimed.plan);
    const Seconds later = std::max(real.time, claimed.time);
    const auto energy = [&](Joules effective) { return (effective + dag_.total_blocking_power() * later).value(); };
    verdict.later_pct.push_back(100 * (real.time / claimed.time - 1));
    verdict.dearer_pct.push_back(100 * (energy(real.effective_energy) / energy(claimed.effective_energy) - 1));
    verdict.slower_pct.push_back(100 * (real.time / highest_.time - 1));
    verdict.lost_pct.push_back(testing::plan_loss(dag_, best_, claimed.plan, real.time).strict_loss_pct);
    const auto total = [&](Joules effective, Seconds time) { return effective + dag_.total_blocking_power() * time; };
    const Joules claimed_reference = total(at_highest.effective_energy, t_max);
    const Joules true_reference = total(highest_.effective_energy, highest_.time);
    verdict.saving_off_pct.push_back(
        100 * (total(real.effective_energy, real.time) / true_reference - claimed.energy / claimed_reference));
    verdict.reference_off_pct.push_back(100 * (claimed_reference / true_reference - 1));
    const model::ProfileNoise& bars = claimed.noise;
    verdict.time_off_sd.push_back((real.time - claimed.time) / std::max(bars.time_stddev, kNoBar));
    verdict.saving_off_sd.push_back(verdict.saving_off_pct.back() / std::max(100 * bars.saving_stddev, 1e-9));
    verdict.bar_pct.push_back(100 * (bars.time_stddev / claimed.time));
  }

 private:
  model::Schedule schedule_;
  model::PipelineCosts costs_;
  model::ComputationDag dag_;
  model::Frontier best_;
  planner::Realizer::Outcome highest_;
};

double root_mean_square(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

/// In percent, of values within one and two of something.
std::string shares_within(const std::vector<double>& values) {
  const auto within = [&](double most) {
    const auto count = std::ranges::count_if(values, [&](double value) { return std::abs(value) <= most; });
    return 100 * static_cast<double>(count) / static_cast<double>(values.size());
  };
  return fmt::format("{:.0f} / {:.0f}", within(1), within(2));
}

double cpu_ms() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void print(const char* truth, double noise, int samples, const char* how, const Verdict& v) {
  const auto runs = static_cast<double>(v.later_pct.size());
  const auto too_much =
      static_cast<double>(std::ranges::count_if(v.saving_off_pct, [](double off) { return off > 0; }));
  fmt::print(
      "| {} | {:g} % | {} | {} | {:.2f} | {:.2f} | {:.2f} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} ({:.0f}) | {} | "
      "{:.2f} | {:.2f} | {:.0f} |\n",
      truth, 100 * noise, samples, how, median(v.later_pct), root_mean_square(v.later_pct), median(v.bar_pct),
      shares_within(v.time_off_sd), median(v.dearer_pct), median(v.slower_pct), median(v.lost_pct),
      median(v.saving_off_pct), 100 * too_much / runs, shares_within(v.saving_off_sd), median(v.reference_off_pct),
      v.noise_pct.empty() ? 0 : median(v.noise_pct), v.cpu_ms / runs);
  std::fflush(stdout);
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  using namespace perseus;
  using namespace perseus::bench;
  const char* const range = argc > 1 ? std::strchr(argv[1], '-') : nullptr;
  const int first = range != nullptr ? std::atoi(argv[1]) : 1;
  const int last = range != nullptr ? std::atoi(range + 1) : argc > 1 ? std::atoi(argv[1]) : 5;
  const int microbatches = argc > 5 ? std::atoi(argv[5]) : 24;
  fmt::print(
      "| truth | noise | samples | profile | later than claimed, % | rms, % | bar, % | within 1 / 2 bars, % | dearer, "
      "% | slower than "
      "highest, % | lost, % | saving off, points (too much, %) | within 1 / 2 bars, % | reference off, % | noise "
      "found, % | CPU ms |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- "
      "| --- |\n");
  for (const Truth& truth : kTruths) {
    if (argc > 2 && *argv[2] != '\0' && std::strcmp(argv[2], truth.name) != 0) continue;
    const auto profile = formats::read_profile_csv((shared_data() / truth.file).string());
    if (!profile) {
      fmt::print(stderr, "noise_report: {}\n", profile.error().message);
      return 1;
    }
    const Judge judge(truth, *profile, microbatches);
    for (const double noise : {0.0, 0.003, 0.01, 0.02, 0.04}) {
      if (argc > 3 && std::abs(100 * noise - std::atof(argv[3])) > 1e-6) continue;
      for (const int samples : {1, 3, 10}) {
        if (noise == 0 && samples > 1) continue;
        if (argc > 4 && samples != std::atoi(argv[4])) continue;
        Verdict believed, pooled;
        for (int seed = first; seed <= (noise == 0 ? first : last); ++seed) {
          std::mt19937_64 engine(static_cast<std::uint64_t>(seed));
          const model::Profile one = measured(*profile, noise, samples, engine);
          judge.judge(one, {}, believed);
          const double before = cpu_ms();
          const profiling::PooledProfile less = profiling::pool(one, std::nullopt, profiling::kDraws);
          pooled.cpu_ms += cpu_ms() - before;
          pooled.noise_pct.push_back(100 * less.time_noise);
          judge.judge(less.profile, less.draws, pooled);
        }
        print(truth.name, noise, samples, "believed", believed);
        print(truth.name, noise, samples, "pooled", pooled);
      }
    }
  }
  return 0;
}
