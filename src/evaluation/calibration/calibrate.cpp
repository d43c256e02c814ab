#include "evaluation/calibration/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/median.h"
#include "evaluation/calibration/allowed_links.h"
#include "planning/checker/plan_run.h"

namespace perseus::calibration {
namespace {

/// The clocks of every computation type, in the order of the stages' instructions.
using Clocks = std::map<std::pair<int, model::Instruction>, std::set<Megahertz, std::greater<>>>;  // highest first

Clocks clocks_of(const model::RunTrace& trace, std::span<const int> plans) {
  Clocks clocks;
  for (const int p : plans) {
    for (int stage = 0; stage < trace.num_stages(); ++stage) {
      for (const model::TracedComputation& c : trace.plans[p].stages[stage])
        clocks[{stage, c.instruction}].insert(c.clock);
    }
  }
  return clocks;
}

std::vector<int> all_plans(const model::RunTrace& trace) {
  std::vector<int> plans(trace.plans.size());
  for (std::size_t p = 0; p < plans.size(); ++p) plans[p] = static_cast<int>(p);
  return plans;
}

void add_constant_time(model::Profile& profile, int stage, model::Instruction instruction, Fitted<Seconds> time,
                       Watts power) {
  if (time.value <= Seconds(0)) return;
  profile.entries.push_back({stage,
                             std::string(name_of(instruction)),
                             {{Megahertz(0), time.value, power * time.value, time.stddev, power * time.stddev, 1}}});
}

/// The least loading of any clock as `load`; what other clocks need beyond it as part of their forward.
void add_loading(model::Profile& profile, const StageLoading& loading, Watts power) {
  Fitted<Seconds> least = loading.per_microbatch;
  const auto forward = std::ranges::find_if(profile.entries, [&](const model::ProfileEntry& entry) {
    return entry.stage == loading.stage && entry.instruction == name_of(model::Instruction::forward);
  });
  if (loading.rise_per_mhz != 0 && forward != profile.entries.end()) {
    for (const model::Measurement& m : forward->measurements) least.value = std::min(least.value, loading.at(m.clock));
    for (model::Measurement& m : forward->measurements) {
      const Seconds more = loading.at(m.clock) - least.value;
      m.time += more;
      m.energy += power * more;
    }
  }
  add_constant_time(profile, loading.stage, model::Instruction::load, least, power);
}

/// A profile of times only, with loading and a tail, for fitting.
model::Profile timing_profile(const model::RunTrace& trace, const Clocks& clocks, const ClockTimes& times,
                              const std::vector<StageLoading>& loading) {
  model::Profile profile;
  profile.accelerators.assign(trace.num_stages(), 1);
  for (const auto& [key, set] : clocks) {
    model::ProfileEntry entry{key.first, std::string(name_of(key.second)), {}};
    for (const Megahertz clock : set)
      entry.measurements.push_back({clock, times.at(key.first, key.second, clock), {}, {}, {}});
    profile.entries.push_back(std::move(entry));
  }
  for (const StageLoading& l : loading)
    add_constant_time(profile, l.stage, model::Instruction::load, l.per_microbatch, Watts(0));
  for (int stage = 0; stage < trace.num_stages(); ++stage)
    add_constant_time(profile, stage, model::Instruction::optimizer_step, {Seconds(1), Seconds(0)}, Watts(0));
  std::ranges::stable_sort(profile.entries, {}, &model::ProfileEntry::stage);
  return profile;
}

/// Visits the traced computations of a plan with their indices in the DAG.
template <class Visit>
void for_each_traced(const model::ComputationDag& dag, const model::TracedPlan& plan, Visit visit) {
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    std::size_t next = 0;
    for (const int c : dag.rank_order[rank]) {
      const auto instruction = model::instruction_named(dag.type_of(c).instruction);
      if (!model::is_constant_time(*instruction)) visit(c, plan.stages[rank][next++]);
    }
  }
}

/// The clocks of a traced plan, as options of the DAG (which has all of them).
model::Plan plan_of(const model::ComputationDag& dag, const model::TracedPlan& traced) {
  model::Plan plan(dag.computations.size());
  for_each_traced(dag, traced, [&](int c, const model::TracedComputation& t) {
    const auto& options = dag.type_of(c).options;
    const auto found = std::ranges::find(options, t.clock, &model::Measurement::clock);
    PERSEUS_CHECK(found != options.end(), "the profile has the clocks of every plan of the trace");
    plan[c] = static_cast<std::uint16_t>(found - options.begin());
  });
  return plan;
}

/// The same DAG where every computation is a type of its own, with its duration in that run of the plan.
model::ComputationDag replay_of(const model::ComputationDag& dag, const Calibration& calibration,
                                const model::TracedPlan& plan) {
  model::ComputationDag replay = dag;
  replay.types.clear();
  for (std::size_t c = 0; c < dag.computations.size(); ++c) {
    model::ComputationType type = dag.type_of(static_cast<int>(c));
    type.options.resize(1);
    for (const StageLoading& l : calibration.loading) {
      if (type.stage != l.stage || type.instruction != name_of(model::Instruction::load)) continue;
      const Seconds measured = plan.loading[l.stage] / calibration.schedule.num_microbatches;
      type.options.front().time = l.per_microbatch.value * (measured / l.measured);
    }
    replay.computations[c].type = static_cast<int>(c);
    replay.types.push_back(std::move(type));
  }
  for_each_traced(replay, plan,
                  [&](int c, const model::TracedComputation& t) { replay.types[c].options.front().time = t.time; });
  return replay;
}

Result<TimedProblem> timing_problem(const model::RunTrace& trace, std::span<const int> plans,
                                    const model::Profile& profile, const model::Schedule& schedule) {
  auto built = model::build_dag(profile, schedule, {});
  if (!built) return built.error();
  TimedProblem problem{*std::move(built), {}};
  const model::ComputationDag& dag = problem.dag;
  for (const int p : plans) {
    const model::TracedPlan& plan = trace.plans[p];
    TimedPlan& row = problem.plans.emplace_back();
    row.measured_s = plan.iteration_time.value();
    row.durations.resize(dag.computations.size());
    for (std::size_t c = 0; c < row.durations.size(); ++c) {
      const model::ComputationType& type = dag.type_of(static_cast<int>(c));
      if (type.instruction == name_of(model::Instruction::load))
        row.durations[c] = plan.loading[type.stage].value() / schedule.num_microbatches;
    }
    for_each_traced(dag, plan, [&](int c, const model::TracedComputation& t) { row.durations[c] = t.time.value(); });
  }
  return problem;
}

/// Share of an iteration in which the busiest stage does not compute: the median of the plans.
double outside_computing(const model::RunTrace& trace, std::span<const int> plans) {
  std::vector<double> shares;
  for (const int p : plans) {
    Seconds busiest;
    for (const auto& stage : trace.plans[p].stages) {
      Seconds busy;
      for (const model::TracedComputation& c : stage) busy += c.time;
      busiest = std::max(busiest, busy);
    }
    shares.push_back(1 - busiest / trace.plans[p].iteration_time);
  }
  return median(std::move(shares));
}

/// Median over plans of measured time over predicted time: insensitive to one bad run.
double median_ratio(const std::vector<Prediction>& predictions) {
  std::vector<double> ratios;
  for (const Prediction& p : predictions) ratios.push_back(p.measured_time / p.predicted_time);
  return median(std::move(ratios));
}

}  // namespace

Result<Calibration> calibrate(const model::RunTrace& trace, std::span<const int> plans,
                              const CalibrationOptions& options) {
  if (Status status = trace.validate(); !status) return status.error();
  if (plans.empty()) return Error{ErrorCode::usage, "no plans to learn from; at least one is needed"};
  Calibration calibration{trace.schedule(), ClockTimes(trace, plans), StagePower(trace, plans, options.power)};
  calibration.loading = measured_loading(trace, plans, calibration.schedule.num_microbatches);
  const model::Profile profile = timing_profile(trace, clocks_of(trace, plans), calibration.times, calibration.loading);

  const auto problem = timing_problem(trace, plans, profile, calibration.schedule);
  if (!problem) return problem.error();
  calibration.outside_computing = outside_computing(trace, plans);
  TimingOptions timing = options.timing;
  if (calibration.outside_computing > kNetworkBound) timing.sending.push_back(Sending::queues);
  calibration.timing = choose_timing(*problem, timing);
  const TimingCandidate& best = calibration.timing.best();
  // The error bar of a constant comes from the errors on plans left out, not from those of the fit.
  const double inflation = best.error_inflation();
  const auto constant = [&](int unknown, double unit) {
    return Fitted<Seconds>{Seconds(unit * best.fit.unknowns[unknown]),
                           Seconds(unit * inflation * best.fit.stddev(unknown))};
  };
  const int latencies = best.links.num_latencies();
  std::vector<double> latency_s, stddev_s;
  for (int k = 0; k < latencies; ++k) {
    latency_s.push_back(constant(k, 1).value.value());
    stddev_s.push_back(constant(k, 1).stddev.value());
  }
  calibration.blocking_transfers = best.sending == Sending::waits;
  calibration.serial_transfers = best.sending == Sending::queues;
  calibration.transfer_latency = best.links.latencies(latency_s);
  calibration.transfer_latency_stddev = best.links.latencies(stddev_s);
  if (options.other_links) calibration.other_links = allowed_links(*problem, calibration.timing);
  calibration.tail = constant(static_cast<int>(best.fit.unknowns.size()) - 1, 1);
  calibration.time_residual = best.fit.rms_error();
  for (int l = 0; l < static_cast<int>(calibration.loading.size()); ++l) {
    Fitted<Seconds>& loading = calibration.loading[l].per_microbatch;
    loading = constant(latencies + l, loading.value.value());
  }
  const auto beyond = [](const std::string& what) {
    return Error{ErrorCode::invalid_input, "times and energies too far apart to be fitted: " + what};
  };
  const std::vector<int> everything = all_plans(trace);
  const model::Profile fitted = make_profile(calibration, trace, everything);
  if (const auto dag = model::build_dag(fitted, calibration.schedule, calibration.costs()); !dag) {
    return beyond(dag.error().message);
  }
  const double ratio = median_ratio(predict(calibration, trace, plans));
  if (!std::isfinite(ratio) || ratio <= 0) {
    return beyond(fmt::format("iterations take {} times as long as predicted", ratio));
  }
  calibration.time_correction = ratio;
  const Status corrected = make_profile(calibration, trace, everything).validate();
  if (!corrected) return beyond(corrected.error().message);
  return calibration;
}

model::Profile make_profile(const Calibration& calibration, const model::RunTrace& trace, std::span<const int> plans) {
  const Clocks clocks = clocks_of(trace, plans);
  model::Profile profile;
  profile.accelerators.assign(trace.num_stages(), 1);
  for (const auto& [key, set] : clocks) {
    const auto [stage, instruction] = key;
    model::ProfileEntry entry{stage, std::string(name_of(instruction)), {}};
    for (const Megahertz clock : set) {
      const auto& measured = calibration.times.measured(stage, instruction);
      const auto found = std::ranges::find(measured, clock, &ClockTime::clock);
      const Seconds time = calibration.times.at(stage, instruction, clock);
      const Fitted<Watts> power = calibration.power.at(stage, clock);
      const bool known = found != measured.end();
      entry.measurements.push_back({clock, calibration.time_correction * time, power.value * time,
                                    known ? found->stddev : Seconds(0), power.stddev * time,
                                    known ? found->samples : 1});
    }
    profile.entries.push_back(std::move(entry));
  }
  const Watts blocking = calibration.power.blocking().value;
  for (const StageLoading& l : calibration.loading) add_loading(profile, l, blocking);
  for (int stage = 0; stage < trace.num_stages(); ++stage)
    add_constant_time(profile, stage, model::Instruction::optimizer_step, calibration.tail, blocking);
  std::ranges::stable_sort(profile.entries, {}, &model::ProfileEntry::stage);
  return profile;
}

std::vector<Prediction> predict(const Calibration& calibration, const model::RunTrace& trace,
                                std::span<const int> plans) {
  const std::vector<int> everything = all_plans(trace);
  const model::Profile profile = make_profile(calibration, trace, everything);
  const auto dag = model::build_dag(profile, calibration.schedule, calibration.costs());
  PERSEUS_CHECK(dag.ok(), "calibrate() built the same DAG");
  checker::PlanRunner runner(*dag);
  std::vector<Prediction> predictions;
  for (const int p : plans) {
    const model::TracedPlan& plan = trace.plans[p];
    const checker::PlanRun run = runner.run(plan_of(*dag, plan));
    const model::ComputationDag replay = replay_of(*dag, calibration, plan);
    const checker::PlanRun replayed = checker::run_plan(replay, model::Plan(replay.computations.size()));
    predictions.push_back({p, plan.iteration_time, run.makespan, replayed.makespan, plan.total_energy(), run.energy});
  }
  return predictions;
}

Result<std::vector<Prediction>> cross_validate(const model::RunTrace& trace, int folds,
                                               const CalibrationOptions& options) {
  const int num_plans = static_cast<int>(trace.plans.size());
  if (folds < 2 || folds > num_plans)
    return Error{ErrorCode::usage,
                 fmt::format("{} folds; must be from 2 to the number of plans, {}", folds, num_plans)};
  std::vector<Prediction> predictions(num_plans);
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<int> learned, left_out;
    for (int p = 0; p < num_plans; ++p) (p % folds == fold ? left_out : learned).push_back(p);
    const auto calibration = calibrate(trace, learned, options);
    if (!calibration) return calibration.error();
    for (const Prediction& prediction : predict(*calibration, trace, left_out))
      predictions[prediction.plan] = prediction;
    if (options.progress) options.progress(static_cast<double>(fold + 1) / folds);
  }
  return predictions;
}

double error_bar(std::span<const double> errors) {
  std::vector<double> sizes;
  for (const double e : errors) sizes.push_back(std::abs(e));
  std::ranges::sort(sizes);
  if (sizes.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(kErrorBarShare * static_cast<double>(sizes.size() + 1)));
  return sizes[std::clamp<std::size_t>(rank, 1, sizes.size()) - 1];
}

double coverage(std::span<const double> errors) {
  if (errors.size() < 2) return 0;
  int covered = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    std::vector<double> others(errors.begin(), errors.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    covered += std::abs(errors[i]) <= error_bar(others) ? 1 : 0;
  }
  return covered / static_cast<double>(errors.size());
}

std::vector<int> suspicious(std::span<const double> errors) {
  constexpr double least_error = 1e-3, times = 10;
  std::vector<double> sizes;
  for (const double e : errors) sizes.push_back(std::abs(e));
  std::vector<int> found;
  if (sizes.empty()) return found;
  const double typical = median(sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > std::max(least_error, times * typical)) found.push_back(static_cast<int>(i));
  }
  return found;
}

PredictionErrors errors_of(std::span<const Prediction> predictions) {
  PredictionErrors errors;
  const auto count = static_cast<double>(predictions.size());
  double squares = 0;
  for (const Prediction& p : predictions) {
    errors.time_mean += std::abs(p.time_error()) / count;
    errors.time_max = std::max(errors.time_max, std::abs(p.time_error()));
    errors.replay_mean += std::abs(p.replay_error()) / count;
    squares += p.energy_error() * p.energy_error();
    errors.energy_max = std::max(errors.energy_max, std::abs(p.energy_error()));
  }
  errors.energy_rms = std::sqrt(squares / count);
  std::vector<double> times, energies;
  for (const Prediction& p : predictions) {
    times.push_back(p.time_error());
    energies.push_back(p.energy_error());
  }
  errors.time_bar = error_bar(times);
  errors.time_coverage = coverage(times);
  errors.energy_bar = error_bar(energies);
  errors.energy_coverage = coverage(energies);
  return errors;
}

}  // namespace perseus::calibration
