#include "server/live/job_shadows.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace perseus::live {

void JobShadows::begin(LiveJob& live) {
  live.store_is_late_ = true;
  const std::unique_ptr<jobs::Job> before = std::exchange(live.shown.shadow, nullptr);
  cast(live, before.get());
}

void JobShadows::cast(LiveJob& live, const jobs::Job* before) {
  const double now_s = clock_.now_s();
  const std::int64_t shown = before != nullptr ? before->version : live.shown.version();
  if (!live.shown.shadow) live.shown.shadow = std::make_unique<jobs::Job>(live.shown.durable(live.job));
  std::swap(live.job, *live.shown.shadow);
  live.settled = false;
  const double quiet_since_s = live.calls.quiet_since_s;
  while (auto body = hooks_.next_follow_up(live, now_s)) {
    if (!jobs::apply(live.job, jobs::Event{now_s, *std::move(body)})) break;
  }
  live.settled = false;
  live.calls.quiet_since_s = std::min(live.calls.quiet_since_s, quiet_since_s);  // the job itself has not looked
  jobs::Job& job = live.job;
  const bool planned = job.plan && job.plan->version == job.version;
  if (planned && job.version != live.shown.committed_plan && !is_provisional(job.version)) {
    const bool same =
        before != nullptr && is_provisional(before->version) && !policies::differs(*job.plan, before->plan);
    job.version = same ? before->version : std::max(provisional_version(now_s), shown + 1);
    job.plan->version = job.version;
  }
  const auto next_s = hooks_.due_s(live, now_s);
  std::swap(live.job, *live.shown.shadow);
  const bool sooner = next_s && *next_s > now_s && *next_s < now_s + kRetryAfter_s;
  wakes_.set_to(live, sooner ? *next_s : now_s + kRetryAfter_s);
  if (live.shown.version() != shown) hooks_.shown(live);
}

void JobShadows::end(LiveJob& live) {
  const bool all_durable = !live.stale_ && live.outbox_.all_durable();
  if (!live.shown.shadow || !all_durable) return;
  live.shown.shadow.reset();
  hooks_.shown(live);
}

}  // namespace perseus::live
