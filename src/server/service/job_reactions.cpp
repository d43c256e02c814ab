#include "server/service/job_reactions.h"

#include <variant>

#include "server/savings/job_lines.h"

namespace perseus::service {

void JobReactions::committed(live::LiveJob& live, const std::vector<live::SequencedEvent>& events) {
  bool new_version = false;
  for (const live::SequencedEvent& event : events) new_version |= take(live, event);
  if (new_version && live.detector) live.detector->forget_times();
  if (new_version) live.reports.energies.forget_before(live.job.version);
  if (new_version || !live.job.live()) parts_.waiting.answer(live);
  parts_.frontiers.want(live);
  parts_.windows.go_on(live);
  parts_.latencies.go_on(live);
  parts_.shapes.go_on(live);
  parts_.latencies.release_first_plan(live);
  parts_.list.update_if_many();
}

bool JobReactions::take(live::LiveJob& live, const live::SequencedEvent& event) {
  parts_.subscriptions.publish(live.job.id, event);
  if (live.profiling) live.profiling->take(live.job, event.sequence, event.event);
  const std::string line = savings::log_line(live.job, live.frontiers.all(), event.event);
  if (!line.empty()) options_.host->log(line);
  const jobs::EventBody& body = event.event.body;
  if (const auto* count = std::get_if<jobs::IterationsCounted>(&body)) {
    live.reports.counted_to(count->last_iteration);
  }
  if (const auto* rank = std::get_if<jobs::RankRegistered>(&body)) {
    live.calls.forget(rank->rank);
    jobs_.rank_waited(live, rank->rank);  // also where its call was answered before this
    if (rank->epoch > 0) parts_.waiting.end_earlier(live, rank->rank);
  }
  const bool is_plan = std::holds_alternative<jobs::PlanDeployed>(body);
  if (is_plan) ++plans_deployed_;
  return is_plan || std::holds_alternative<jobs::WindowHandedOut>(body);
}

void JobReactions::removed(live::LiveJob& live) {
  parts_.frontiers.job_removed(live);
  parts_.waiting.job_removed(live);
}

void JobReactions::wake(const std::string& id) {
  live::LiveJob* const known = jobs_.in_memory(id);
  // Ranks are notified in time, even if the store does not accept the event.
  if (known != nullptr && known->shown.is_late()) jobs_.go_on_as_shown(*known);
  jobs_.with(id, [this, id](const Result<live::LiveJob*>& live) {
    const double now_s = clock_.now_s();
    if (!live) {
      const bool again = live.error().code != ErrorCode::not_found && live.error().code != ErrorCode::internal;
      if (again) jobs_.wake_again(id, now_s + live::kRetryAfter_s);
      return;
    }
    (*live)->retry_s.reset();
    parts_.frontiers.want(**live);
    parts_.windows.go_on(**live);
    parts_.latencies.go_on(**live);
    parts_.shapes.go_on(**live);
    jobs_.touch(**live);
    live::LiveJob* const still = jobs_.in_memory(id);
    if (still == nullptr) return;
    parts_.latencies.release_first_plan(*still);
    parts_.waiting.answer(*still);
    jobs_.set_wake(*still, now_s);
  });
}

}  // namespace perseus::service
