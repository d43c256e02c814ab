#include <algorithm>

#include "server/service/service_members.h"

namespace perseus::service {

ServiceCounts Service::counts() const {
  const auto size = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  const plans::Characterizations& planning = parts_->characterizations;
  ServiceCounts counts;
  counts.jobs_in_memory = size(parts_->jobs.live().size());
  counts.waiting_ranks = size(parts_->waiting.size());
  counts.subscriptions = size(parts_->subscriptions.size());
  counts.plans_deployed = parts_->reactions.plans_deployed();
  counts.characterizations = planning.computed();
  counts.characterizations_failed = planning.failed();
  counts.characterizing = planning.running();
  for (const auto& [kind, name] : {std::pair{plans::PlanningQueue::Kind::first, std::string_view("first")},
                                   {plans::PlanningQueue::Kind::refinement, std::string_view("refinement")}}) {
    counts.planning.push_back({name, planning.waiting(kind), planning.under_way(kind)});
  }
  counts.plannings_stopped = planning.stopped();
  counts.planner_s = planning.planner_s();
  const views::JobList& list = parts_->list.list();
  for (const std::string_view state : views::listed_states()) {
    const auto found = list.states().find(state);
    counts.jobs_by_state.emplace_back(state, found == list.states().end() ? 0 : found->second);
  }
  counts.ranks = list.live_ranks();
  counts.commits = parts_->store.commits();
  counts.database_bytes = parts_->store.size_bytes();
  counts.energy = parts_->energy;
  counts.clocks = parts_->reports.clock_counts();
  if (auto site = parts_->site.view()) {
    counts.site = std::move(site->domains);
    counts.site_unread_jobs = site->unread_jobs;
  }
  counts.alerts = parts_->watch.alerts().counts();
  counts.webhook = parts_->webhook->counts();
  for (const auto& [id, live] : parts_->jobs.live()) {
    const jobs::Job& job = live->job;
    counts.stragglers_in_force += std::ranges::count(job.notices, true, &jobs::Notice::in_force);
    if (!job.live()) continue;
    if (auto figures = reports::job_figures(*live)) counts.jobs_in_training.push_back(*std::move(figures));
    counts.ranks_without_control += std::ssize(job.uncontrolled);
    if (job.state == jobs::JobState::profiling && !job.windows.empty()) {
      counts.profiling_window_age_s = std::max(counts.profiling_window_age_s, parts_->clock.now_s() - job.window_s);
    }
  }
  return counts;
}

}  // namespace perseus::service
