#include "server/savings.h"

#include <algorithm>
#include <cmath>

#include "server/stragglers.h"

namespace perseus::server {

std::optional<JobView::PerIteration> iteration_cost(const Job& job, const Frontiers& frontiers) {
  if (!job.plan) return std::nullopt;
  // Few choices, many pipelines.
  struct OfChoice {
    Joules computing, computing_all_max;
    Watts waiting;
    Seconds time, all_max_time;
  };
  std::vector<OfChoice> of_choice;
  for (const PlanDeployed::Choice& choice : job.plan->choices) {
    const auto found = frontiers.find(choice.input);
    if (choice.point < 0 || found == frontiers.end()) return std::nullopt;
    const CharacterisedPipeline& pipeline = *found->second;
    const FrontierPoint& point = pipeline.frontier.points[choice.point];
    const double scale = scale_of(job, pipeline);
    of_choice.push_back({scale * point.effective_energy, scale * pipeline.all_max_effective_energy,
                         scale * pipeline.dag.total_blocking_power(), point.time, pipeline.all_max_time});
  }
  const std::vector<double> degrees = degrees_in_force(job);
  JobView::PerIteration cost;
  Joules computing;
  Joules computing_all_max;
  Watts waiting;
  for (int p = 0; p < job.num_pipelines(); ++p) {
    const OfChoice& own = of_choice[job.plan->choice_of[p]];
    computing += own.computing;
    computing_all_max += own.computing_all_max;
    waiting += own.waiting;
    cost.time = std::max(cost.time, degrees[p] * own.time);
    cost.all_max_time = std::max(cost.all_max_time, degrees[p] * own.all_max_time);
  }
  cost.energy = computing + waiting * cost.time;
  cost.all_max_energy = computing_all_max + waiting * cost.all_max_time;
  return cost;
}

std::optional<IterationsCounted> counted(const Job& job, const Frontiers& frontiers,
                                         std::optional<std::int64_t> iteration, double now_s) {
  const auto cost = iteration_cost(job, frontiers);
  if (!cost) return std::nullopt;
  IterationsCounted count;
  if (iteration && job.counted_to > 0) {
    count.iterations = std::max<std::int64_t>(0, *iteration - job.counted_to);
    count.from_reports = true;
  } else {
    count.iterations = static_cast<std::int64_t>(std::max(0.0, (now_s - job.counted_s) / cost->time.value()));
  }
  count.last_iteration = std::max(iteration.value_or(0), job.counted_to);
  if (count.iterations == 0 && count.last_iteration == job.counted_to) return std::nullopt;
  const auto n = static_cast<double>(count.iterations);
  count.saved_j = n * (cost->all_max_energy - cost->energy).value();
  count.all_max_energy_j = n * cost->all_max_energy.value();
  return count;
}

}  // namespace perseus::server
