// Prints the tables of docs/online_profiling.md: iterations of online profiling until its plan is as good as the one
// from the full noise-free profile. Needs the published measurements.
//
// usage: profiling_report [--trace] [--runs] [--measured] [SEEDS [MODE [PROFILE]]]
//   SEEDS: their number, or the first and last as 11-20. Default: 9 seeds of all modes and profiles. PROFILE: only the
//   profile of that name. --trace: prints every window. --runs: prints every run.
//   --measured: uses the profiles of real training runs of 4 and 8 stages instead.
//
// The truth is the published profile of GPT-3 175B, 8 stages, or a measured one, with 24 microbatches, 1F1B. Every
// time and energy of a computation is measured with 1 % of independent noise. After each window, the planner plans
// from the estimate; the report runs that plan on the truth, at its own fastest point and at T' = 1.2 T_min of the
// truth. The plan is good if at both it takes at most 0.2 % more energy than the plan from the noise-free profile,
// and is late by at most the standard deviation of one iteration's time (0.14 %, computed). It is strictly good if it
// also loses at most 0.2 % against the best plan for the time that it really took (tests/support/plan_loss.h).
// Near T_min, where the frontier is steep, that is much harder.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"
#include "planning/planner/realize.h"
#include "server/profiling/online_profiler.h"
#include "server/profiling/profile_estimate.h"
#include "tests/support/plan_loss.h"
#include "tests/support/simulated_job.h"

namespace perseus::bench {
namespace {

constexpr double kGoodPct = 0.2;
constexpr double kSlowdown = 1.2;

struct Setting {
  const char* name;
  profiling::ProfilingMode mode;
  testing::SimulationOptions simulation;
  bool tell_blocking_power;
  int iterations_per_window;
  int most_iterations;  ///< the report ends a run that never was good after this many
  std::vector<double> slowdowns = {1.0, 1.2};
};

/// The plan of `to` with the clocks of a plan of `from`, a DAG of the same schedule.
model::Plan translated(const model::ComputationDag& from, const model::Plan& plan, const model::ComputationDag& to) {
  model::Plan result(plan.size());
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Megahertz clock = from.type_of(static_cast<int>(i)).options[plan[i]].clock;
    const auto& options = to.type_of(static_cast<int>(i)).options;
    for (std::size_t o = 0; o < options.size(); ++o) {
      if (options[o].clock == clock) result[i] = static_cast<std::uint16_t>(o);
    }
  }
  return result;
}

struct Verdict {
  testing::PlanLoss fastest, slow;
  double noise_pct = 0;
  [[nodiscard]] bool good() const {
    return std::max(fastest.loss_pct, slow.loss_pct) <= kGoodPct &&
           std::max(fastest.late_pct, slow.late_pct) <= noise_pct;
  }
  [[nodiscard]] bool strictly_good() const {
    return good() && std::max(fastest.strict_loss_pct, slow.strict_loss_pct) <= kGoodPct;
  }
};

class Judge {
 public:
  Judge(const model::ComputationDag& truth, double noise_pct)
      : truth_(truth),
        noise_pct_(noise_pct),
        best_(planner::plan_exact(truth)),
        highest_(planner::Realizer(truth).realize(model::Plan(truth.computations.size())).time) {}
  [[nodiscard]] const model::ComputationDag& truth() const { return truth_; }
  [[nodiscard]] Seconds t_min() const { return best_.points.back().time; }
  [[nodiscard]] Verdict judge(const profiling::ProfileEstimate& estimate, const model::Schedule& schedule) const {
    const model::ComputationDag dag =
        model::build_dag(profiling::for_planning(estimate), schedule, {estimate.blocking_power, Seconds(0)}).value();
    const model::Frontier frontier = planner::plan_exact(dag);
    const Seconds deadline = t_min() * kSlowdown;
    const Seconds highest = planner::Realizer(dag).realize(model::Plan(dag.computations.size())).time;
    const model::Plan fastest = translated(dag, planner::look_up(frontier, highest).plan, truth_);
    const model::Plan slow = translated(dag, planner::look_up(frontier, deadline).plan, truth_);
    return {testing::plan_loss(truth_, best_, fastest, highest_), testing::plan_loss(truth_, best_, slow, deadline),
            noise_pct_};
  }

 private:
  const model::ComputationDag& truth_;
  double noise_pct_;
  model::Frontier best_;
  Seconds highest_;  ///< with everything at the highest clock
};

struct Truth {
  const char* name;
  const char* file;  ///< in the published measurements
  double blocking_power;
};
constexpr Truth kEmulated[] = {{"a100_sxm", "emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv", 83.64},
                               {"a40", "emulation/stage_profile/gpt3-175b+a40_bf16.csv", 70.38}};
constexpr Truth kMeasured[] = {
    {"A100_gpt3-xl_pp4", "measured/A100_gpt3-xl_pp4.profile_grid.csv", 83.64},
    {"A40_bloom-3b_pp8", "measured/A40_bloom-3b_pp8.profile_grid.csv", 70.38},
    {"A40_wide-resnet101_8_pp8", "measured/A40_wide-resnet101_8_pp8.profile_grid.csv", 70.38}};

struct Run {
  int good_from = -1;    ///< iterations after which it was good and stayed good; -1: never
  int strict_from = -1;  ///< the same for strictly good
  int stopped = 0;       ///< iterations after which the profiler finished
  Verdict at_stop;
  double expected_loss_pct = 0;  ///< at T_max, by the profiler when it stops; so are these: whether its bounds hold
  bool loss_held = false, late_held = false;
  double next_cpu_ms = 0;
  std::string why;
  /// Cost of the windows by the true profile, against everything at the highest clock.
  int windows = 0, resting = 0;
  double slowdown_sum_pct = 0, worst_pct = 0, extra_energy_pct = 0;
};

/// Slowdown and extra energy of a window's iteration against everything at the highest clock, by the true profile.
struct WindowCost {
  double slowdown_pct, energy_pct;
};
WindowCost cost_of(const model::ComputationDag& truth, const profiling::ProfilingWindow& window) {
  model::Plan plan(truth.computations.size());
  for (std::size_t rank = 0; rank < truth.rank_order.size(); ++rank) {
    for (std::size_t a = 0; a < truth.rank_order[rank].size(); ++a) {
      const int c = truth.rank_order[rank][a];
      const auto& options = truth.type_of(c).options;
      const auto found = std::ranges::find(options, window.clocks[rank][a], &model::Measurement::clock);
      if (found != options.end()) plan[c] = static_cast<std::uint16_t>(found - options.begin());
    }
  }
  planner::Realizer realizer(truth);
  const auto all_max = realizer.realize(model::Plan(plan.size())), now = realizer.realize(plan);
  const Watts waiting = truth.total_blocking_power();
  return {
      100 * (now.time / all_max.time - 1),
      100 * ((now.effective_energy + waiting * now.time) / (all_max.effective_energy + waiting * all_max.time) - 1)};
}

double cpu_ms() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Run run(const Setting& setting, const model::Profile& truth, const model::Schedule& schedule, const Judge& judge,
        std::uint64_t seed, bool trace) {
  testing::SimulatedJob job(truth, schedule, setting.simulation, seed);
  profiling::ProfilingOptions options;
  options.mode = setting.mode;
  options.iterations_per_window = setting.iterations_per_window;
  options.max_iterations = setting.most_iterations;
  options.seed = seed;
  options.slowdowns = setting.slowdowns;
  profiling::OnlineProfiler profiler =
      profiling::OnlineProfiler::create(job.job(setting.tell_blocking_power), options).value();
  Run result;
  int windows = 0;
  for (;;) {
    const double began = cpu_ms();
    profiling::ProfilingStep step = profiler.next();
    result.next_cpu_ms += cpu_ms() - began;
    ++windows;
    if (const profiling::ProfilingDone* done = step.done()) {
      result.why = done->why;
      if (!step.doubt.at.empty()) {
        const auto& at = step.doubt.at.front();
        result.expected_loss_pct = at.expected_loss_pct;
        result.loss_held = result.at_stop.fastest.loss_pct <= at.loss_bound_pct;
        result.late_held = result.at_stop.fastest.late_pct <= at.late_bound_pct;
      }
      break;
    }
    const profiling::ProfilingWindow window = *step.window();
    const WindowCost cost = cost_of(judge.truth(), window);
    result.windows += window.iterations;
    result.resting += window.rest;
    result.slowdown_sum_pct += cost.slowdown_pct * window.iterations;
    result.worst_pct = std::max(result.worst_pct, cost.slowdown_pct);
    result.extra_energy_pct += cost.energy_pct * window.iterations;
    if (trace)
      fmt::print("  window {}: {:.1f} % slower, {:.1f} expected, after {} at rest\n", window.number, cost.slowdown_pct,
                 window.slowdown_pct, window.rest);
    if (Status status = profiler.hand_out(window); !status) std::abort();
    for (const profiling::RankResult& one : job.run(window)) {
      const auto rejections = profiler.report(one);
      if (!rejections) {
        fmt::print(stderr, "{}\n", rejections.error().message);
        std::abort();
      }
      if (trace) {
        for (const profiling::Rejection& rejection : *rejections) fmt::print("  {}\n", rejection.message);
      }
    }
    const auto estimate = profiler.estimate();
    if (!estimate) continue;
    const Verdict verdict = judge.judge(*estimate, schedule);
    const int iterations = profiler.iterations_handed_out();
    if (trace) {
      fmt::print("  {:3} T_min loss {:+.3f} late {:.3f}; {:g} T_min loss {:+.3f} late {:.3f}  P {:.1f}\n", iterations,
                 verdict.fastest.loss_pct, verdict.fastest.late_pct, kSlowdown, verdict.slow.loss_pct,
                 verdict.slow.late_pct, estimate->blocking_power.value());
      if (const auto doubt = profiler.uncertainty()) fmt::print("      {}\n", doubt->text);
    }
    const auto keep = [&](bool good, int& from) { from = !good ? -1 : from < 0 ? iterations : from; };
    keep(verdict.good(), result.good_from);
    keep(verdict.strictly_good(), result.strict_from);
    result.stopped = iterations;
    result.at_stop = verdict;
  }
  result.next_cpu_ms /= windows;
  if (trace) fmt::print("  done: {}\n", result.why);
  return result;
}

std::string cell(int iterations) { return iterations < 0 ? "never" : std::to_string(iterations); }

void print_row(const char* gpu, const Setting& setting, std::vector<Run> runs) {
  const auto quantiles = [&](auto value) {
    std::vector<int> values;
    for (const Run& r : runs) values.push_back(value(r) < 0 ? 1 << 30 : value(r));
    std::ranges::sort(values);
    const auto at = [&](double share) {
      const int v = values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
      return cell(v == 1 << 30 ? -1 : v);
    };
    return std::pair(at(0.5), at(0.9));
  };
  const auto [good, good90] = quantiles([](const Run& r) { return r.good_from; });
  const auto [strict, strict90] = quantiles([](const Run& r) { return r.strict_from; });
  const auto [stop, stop90] = quantiles([](const Run& r) { return r.stopped; });
  const auto median = [&](auto value) {
    std::vector<double> values;
    for (const Run& r : runs) values.push_back(value(r));
    std::ranges::sort(values);
    return values[values.size() / 2];
  };
  const auto good_at_stop = std::ranges::count_if(runs, [](const Run& r) { return r.at_stop.good(); });
  const auto worst = [&](auto value) { return value(*std::ranges::max_element(runs, {}, value)); };
  const auto mean_slowdown = [](const Run& r) { return r.slowdown_sum_pct / std::max(1, r.windows + r.resting); };
  fmt::print(
      "| {} | {} | {} | {} | {} | {} | {} | {} | {} of {} | {:.2f} | {} / {} | {:+.2f} / {:.2f} | {:+.2f} / {:.2f} | "
      "{:.0f} | "
      "{:.0f} | "
      "{:.1f} | {:.1f} | {:.2f} | {:+.2f} |\n",
      gpu, setting.name, good, good90, strict, strict90, stop, stop90, good_at_stop, runs.size(),
      median([](const Run& r) { return r.expected_loss_pct; }), std::ranges::count_if(runs, &Run::loss_held),
      std::ranges::count_if(runs, &Run::late_held), median([](const Run& r) { return r.at_stop.fastest.loss_pct; }),
      median([](const Run& r) { return r.at_stop.fastest.late_pct; }),
      median([](const Run& r) { return r.at_stop.slow.loss_pct; }),
      median([](const Run& r) { return r.at_stop.slow.late_pct; }), median([](const Run& r) { return r.next_cpu_ms; }),
      median([](const Run& r) { return static_cast<double>(r.windows + r.resting); }), worst(mean_slowdown),
      worst([](const Run& r) { return r.worst_pct; }), median([](const Run& r) { return r.slowdown_sum_pct / 100; }),
      median([](const Run& r) { return r.extra_energy_pct / 100; }));
  std::fflush(stdout);
}

/// Standard deviation of the time of an iteration at the highest clocks, in percent of its mean.
double iteration_noise_pct(const model::Profile& truth, const model::Schedule& schedule) {
  testing::SimulatedJob job(truth, schedule, {}, 1);
  profiling::ProfilingWindow window{0, 400, false, false, {}};
  const profiling::ProfilingJob description = job.job();
  for (const auto& actions : schedule.ranks) {
    std::vector<Megahertz>& clocks = window.clocks.emplace_back();
    for (const model::Action& action : actions) clocks.push_back(description.clocks[action.stage].front());
  }
  const profiling::RankResult result = job.run(window).front();
  double mean = 0, squares = 0;
  for (const Seconds t : result.iteration_time) mean += t.value() / window.iterations;
  for (const Seconds t : result.iteration_time) squares += (t.value() - mean) * (t.value() - mean);
  return 100 * std::sqrt(squares / (window.iterations - 1)) / mean;
}

struct Arguments {
  int first = 1, last = 0;
  std::string mode, profile;  ///< empty: all
  bool trace = false, runs = false, measured = false;
};

void print_run(int seed, const Run& run) {
  const testing::PlanLoss &fast = run.at_stop.fastest, &slow = run.at_stop.slow;
  fmt::print(stderr, "  seed {}: {}, {:+.3f} / {:.3f} at T_max, {:+.3f} / {:.3f} at 1.2 T_min; {}\n", seed,
             run.at_stop.good() ? "good" : "not good", fast.loss_pct, fast.late_pct, slow.loss_pct, slow.late_pct,
             run.why);
}

int report(const Arguments& arguments) {
  fmt::print(
      "| GPU | mode | good after, median | 90 % | strictly, median | 90 % | stops after, median | 90 % | good when it "
      "stops | expects to lose at T_max [%] | its bounds hold, loss / late | loss / late at "
      "T_min "
      "[%] | at 1.2 T_min | next(), CPU [ms] | iterations, resting included | mean slowdown [%], worst run | worst "
      "iteration [%] | cost "
      "[iterations' time] | cost [iterations' energy] |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | "
      "--- | --- | "
      "--- | --- | --- | --- | --- | --- | "
      "--- |\n");
  const std::span<const Truth> truths =
      arguments.measured ? std::span<const Truth>(kMeasured) : std::span<const Truth>(kEmulated);
  for (const auto& [gpu, file, power] : truths) {
    if (!arguments.profile.empty() && arguments.profile != gpu) continue;
    const Result<model::Profile> truth = formats::read_profile_csv((shared_data() / file).string());
    if (!truth) {
      fmt::print(stderr, "{}\n", truth.error().message);
      return 66;
    }
    const model::Schedule schedule = model::make_schedule("1f1b", {truth->num_stages(), 24, 1}).value();
    testing::SimulationOptions apart, by_iteration, by_noisy_iteration;
    apart.blocking_power = by_iteration.blocking_power = by_noisy_iteration.blocking_power = Watts(power);
    by_iteration.energy_breakdown = by_noisy_iteration.energy_breakdown = false;
    by_noisy_iteration.meter_noise = 0.01;
    testing::SimulationOptions noisy = apart;
    noisy.noise = 0.02;
    const Setting settings[] = {
        {"adaptive", profiling::ProfilingMode::adaptive, apart, true, 1, 60},
        {"adaptive, T_max only", profiling::ProfilingMode::adaptive, apart, true, 1, 60, {1.0}},
        {"adaptive, 2 % noise", profiling::ProfilingMode::adaptive, noisy, true, 1, 60},
        {"adaptive, blocking power unknown", profiling::ProfilingMode::adaptive, apart, false, 1, 60},
        {"adaptive, iteration energies", profiling::ProfilingMode::adaptive, by_iteration, true, 1, 60},
        {"adaptive, iteration energies, meter 1 %", profiling::ProfilingMode::adaptive, by_noisy_iteration, true, 1,
         60},
        {"adaptive, iteration energies, meter 1 %, blocking power unknown", profiling::ProfilingMode::adaptive,
         by_noisy_iteration, false, 1, 60},
        {"plain, 5 iterations a clock", profiling::ProfilingMode::plain, apart, true, 5, 1000},
    };
    const model::ComputationDag dag = model::build_dag(*truth, schedule, {Watts(power), Seconds(0)}).value();
    const double noise_pct = iteration_noise_pct(*truth, schedule);
    const Judge judge(dag, noise_pct);
    for (const Setting& setting : settings) {
      if (!arguments.mode.empty() && arguments.mode != setting.name) continue;
      std::vector<Run> runs;
      for (int seed = arguments.first; seed <= arguments.last; ++seed) {
        runs.push_back(run(setting, *truth, schedule, judge, static_cast<std::uint64_t>(seed), arguments.trace));
        if (arguments.runs) print_run(seed, runs.back());
      }
      print_row(gpu, setting, std::move(runs));
    }
    fmt::print(stderr, "{}: iteration time varies by {:.2f} %\n", gpu, noise_pct);
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  perseus::bench::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--trace") == 0) {
      arguments.trace = true;
    } else if (std::strcmp(argv[i], "--measured") == 0) {
      arguments.measured = true;
    } else if (std::strcmp(argv[i], "--runs") == 0) {
      arguments.runs = true;
    } else if (arguments.last == 0) {
      const char* dash = std::strchr(argv[i], '-');
      if (dash != nullptr) arguments.first = std::max(1, std::atoi(argv[i]));
      arguments.last = std::max(arguments.first, std::atoi(dash != nullptr ? dash + 1 : argv[i]));
    } else {
      (arguments.mode.empty() ? arguments.mode : arguments.profile) = argv[i];
    }
  }
  if (arguments.last == 0) arguments.last = 9;
  return perseus::bench::report(arguments);
}
