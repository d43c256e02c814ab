#include "server/reports/energy_figures.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "server/live/job_view.h"
#include "server/policies/stragglers.h"

namespace perseus::reports {

std::optional<JobFigures> job_figures(const live::LiveJob& live) {
  const jobs::Job& job = live.job;
  if (!job.live() || job.silent || !job.plan || !job.has_reports()) return std::nullopt;
  const auto cost = live::iteration_run(live);
  if (!cost) return std::nullopt;
  JobFigures figures;
  figures.job = job.id;
  figures.name = job.spec.name;
  figures.power = savings::power_of(job, *cost);
  figures.planned_time = cost->time;
  figures.all_max_time = cost->all_max_time;
  if (const auto* const measured = job.plan_measured()) figures.measured_time = Seconds(measured->time_s);
  const jobs::PlanDeployed::Choice& choice = job.plan->of(0);
  figures.point = choice.point;
  if (const auto facts = job.characterized.find(choice.input); facts != job.characterized.end()) {
    figures.points = facts->second.points;
  }
  figures.stragglers = std::ranges::count_if(policies::degrees_in_force(job), [](double degree) { return degree > 1; });
  figures.uncontrolled = std::ssize(job.uncontrolled);
  figures.clocks = live.clocks.sums();
  if (job.total.iterations > job.estimated.iterations) {
    figures.saved_measured = Joules(job.total.saved_j - job.estimated.saved_j);
  }
  if (job.estimated.iterations > 0) figures.saved_estimated = Joules(job.estimated.saved_j);
  return figures;
}

void EnergyCounters::take(const std::vector<live::SequencedEvent>& written) {
  for (const live::SequencedEvent& event : written) {
    if (std::holds_alternative<jobs::PlanDropped>(event.event.body)) ++plans_dropped_;
    const auto* const count = std::get_if<jobs::IterationsCounted>(&event.event.body);
    if (count == nullptr) continue;
    Sums& sums = sums_[count->measured ? 1 : 0];
    sums.iterations += count->iterations;
    sums.used_j += std::max(0.0, count->all_max_energy_j - count->saved_j);
    (count->saved_j < 0 ? sums.wasted_j : sums.saved_j) += std::abs(count->saved_j);
  }
}

}  // namespace perseus::reports
