#include "server/profiles/modeled_saving.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "base/count_text.h"
#include "io/formats/profile_csv.h"
#include "io/report/format.h"
#include "io/report/summary.h"
#include "planning/baselines/best_of_all.h"
#include "planning/model/build_dag.h"
#include "planning/model/reference_plans.h"
#include "planning/partitioner/gpu_model.h"
#include "planning/planner/quick.h"
#include "planning/planner/realize.h"
#include "server/profiling/modeled_profile.h"

namespace perseus::profiles {
namespace {

constexpr int kDeadlines = 50;          // of each draw's frontier, of which one plan is used
constexpr double kMostPlanning_s = 10;  // of all draws together, estimated, for exact plans

struct MeanStddev {
  double mean = 0, stddev = 0;
};

MeanStddev mean_and_stddev(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / count)};
}

/// An iteration of the whole job with everything at the one clock.
std::string text_of_iteration(const model::ComputationDag& dag, const OneClockMeasurement& measured) {
  const auto [time, effective] = planner::Realizer(dag).realize(model::all_maximum_clock(dag));
  const double counted = std::accumulate(dag.accelerators.begin(), dag.accelerators.end(), 0);
  const Joules energy = (measured.gpus / counted) * (effective + dag.total_blocking_power() * time);
  return fmt::format("measured without setting clocks, an iteration takes {} and {} on {} ({})", report::text_of(time),
                     report::text_of(energy), count_text(measured.gpus, "GPU"), report::text_of(energy / time));
}

struct Draws {
  model::ComputationDag dag;
  profiling::DrawnTypes types;
};

Result<Draws> draws_of(const OneClockMeasurement& measured, const model::Schedule& schedule,
                       const model::PipelineCosts& costs, StopCheck& check) {
  const auto modeled = profiling::model_clocks(measured.profile, measured.clocks);
  if (!modeled) return modeled.error();
  auto dag = model::build_dag(modeled->profile, schedule, costs);
  if (!dag) return dag.error();
  auto types = profiling::drawn_types(modeled->draws, std::nullopt, schedule, costs, check);
  if (!types) return types.error();
  return Draws{*std::move(dag), *std::move(types)};
}

std::string text_of_gpu(const std::string& gpu) {
  return gpu.empty() ? "the ranks have not named one GPU that all of them use" : fmt::format("the GPU is '{}'", gpu);
}

}  // namespace

Status plan_each_draw(const model::ComputationDag& dag, const profiling::DrawnTypes& drawn,
                      const planner::PlannerOptions& options, bool quick, const TakeDraw& take, StopCheck& check) {
  model::ComputationDag own = dag;
  for (const auto& types : drawn) {
    own.types = types;
    const auto frontier =
        quick ? planner::plan_quick(own, options, check) : baselines::plan_best_of_all(own, options, {}, check);
    if (!frontier) return frontier.error();
    take(own, *frontier);
  }
  return Ok{};
}

std::optional<jobs::SavingModeled> saving_modeled(const OneClockMeasurement& measured, StopCheck& check) {
  jobs::SavingModeled saving{measured.gpu, {}, {}, ""};
  const auto none = [&](const std::string& why) {
    saving.text = "no saving is modeled: " + why;
    return saving;
  };
  const auto input = jobs::complete(formats::format_profile_csv(measured.profile), measured.shape, measured.limits);
  if (!input) return none(input.error().message);
  const auto schedule = jobs::schedule_of(input->shape, input->ranks);
  if (!schedule) return none(schedule.error().message);
  const model::PipelineCosts costs = jobs::costs_of(input->shape);
  const auto one_clock = model::build_dag(measured.profile, *schedule, costs);
  if (!one_clock) return none(one_clock.error().message);
  const std::string iteration = text_of_iteration(*one_clock, measured);
  if (!partitioner::gpu_of_device(measured.gpu)) {
    return none(
        fmt::format("{}, and the model knows {}; {}", text_of_gpu(measured.gpu), partitioner::gpu_names(), iteration));
  }
  const auto draws = draws_of(measured, *schedule, costs, check);
  if (check.stopped()) return std::nullopt;
  if (!draws) return none(fmt::format("{}; {}", draws.error().message, iteration));
  planner::PlannerOptions options;
  options.effort = planner::Effort::low;
  options.deadlines = kDeadlines;
  const double planning_s =
      planner::estimated_planning_s(draws->dag, options) * static_cast<double>(draws->types.size());
  std::vector<double> saved_pct;
  const Status planned = plan_each_draw(
      draws->dag, draws->types, options, planning_s > kMostPlanning_s,
      [&](const model::ComputationDag& dag, const model::Frontier& frontier) {
        saved_pct.push_back(report::summarize(dag, frontier, std::nullopt).saving_pct);
      },
      check);
  const bool stopped = check.stopped();
  if (stopped && std::ssize(saved_pct) < kLeastDraws) return std::nullopt;
  if (!planned && !stopped) return none(fmt::format("{}; {}", planned.error().message, iteration));
  const auto [mean, stddev] = mean_and_stddev(saved_pct);
  saving.saving_pct = mean;
  saving.saving_stddev_pct = stddev;
  saving.text = fmt::format(
      "would save {:.1f} % (+- {:.1f} %) of the energy if clocks were set, by a model of {} at the "
      "clocks that were not measured; {}",
      mean, stddev, measured.gpu, iteration);
  return saving;
}

}  // namespace perseus::profiles
