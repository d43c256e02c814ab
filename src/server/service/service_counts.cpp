#include <algorithm>

#include "server/service/service.h"

namespace perseus::service {

ServiceCounts Service::counts() {
  const auto size = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  const plans::Characterizations& planning = characterizations;
  ServiceCounts counts;
  counts.jobs_in_memory = size(jobs.live().size());
  counts.waiting_ranks = size(waiting.size());
  counts.subscriptions = size(subscriptions.size());
  counts.plans_deployed = reactions.plans_deployed();
  counts.characterizations = planning.computed();
  counts.characterizations_failed = planning.failed();
  counts.characterizing = planning.running();
  for (const auto& [kind, name] : {std::pair{plans::PlanningQueue::Kind::first, std::string_view("first")},
                                   {plans::PlanningQueue::Kind::refinement, std::string_view("refinement")}}) {
    counts.planning.push_back({name, planning.waiting(kind), planning.under_way(kind)});
  }
  counts.plannings_stopped = planning.stopped();
  counts.planner_s = planning.planner_s();
  const views::JobList& listed = list.list();
  for (const std::string_view state : views::listed_states()) {
    const auto found = listed.states().find(state);
    counts.jobs_by_state.emplace_back(state, found == listed.states().end() ? 0 : found->second);
  }
  counts.ranks = listed.live_ranks();
  counts.commits = store.commits();
  counts.database_bytes = store.size_bytes();
  counts.energy = energy;
  counts.clocks = reports.clock_counts();
  if (auto view = site.view()) {
    counts.site = std::move(view->domains);
    counts.site_unread_jobs = view->unread_jobs;
  }
  counts.alerts = watch.alerts().counts();
  counts.webhook = webhook->counts();
  for (const auto& [id, live] : jobs.live()) {
    const jobs::Job& job = live->job;
    counts.stragglers_in_force += std::ranges::count(job.notices, true, &jobs::Notice::in_force);
    if (!job.live()) continue;
    if (auto figures = reports::job_figures(*live)) counts.jobs_in_training.push_back(*std::move(figures));
    counts.ranks_without_control += std::ssize(job.uncontrolled);
    if (job.state == jobs::JobState::profiling && !job.windows.empty()) {
      counts.profiling_window_age_s = std::max(counts.profiling_window_age_s, clock_.now_s() - job.window_s);
    }
  }
  return counts;
}

}  // namespace perseus::service
