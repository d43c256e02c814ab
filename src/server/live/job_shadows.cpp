#include "server/live/job_shadows.h"

#include <algorithm>

namespace perseus::live {

void JobShadows::go_on(LiveJob& live) {
  const double now_s = clock_.now_s();
  const std::int64_t version = live.shown.version();
  std::optional<double> next_s;
  {
    const AsShown as_shown(live, &live.shown.go_on(live.job));
    live.settled = false;
    const double quiet_since_s = live.calls.quiet_since_s;
    while (auto body = hooks_.next_follow_up(live, now_s)) {
      if (!jobs::apply(live.job, jobs::Event{now_s, *std::move(body)})) break;
    }
    live.settled = false;
    live.calls.quiet_since_s = std::min(live.calls.quiet_since_s, quiet_since_s);  // the job itself has not looked
    live.shown.number(live.job, now_s);
    next_s = hooks_.due_s(live, now_s);
  }
  const bool sooner = next_s && *next_s > now_s && *next_s < now_s + kRetryAfter_s;
  wakes_.set_to(live, sooner ? *next_s : now_s + kRetryAfter_s);
  if (live.shown.version() != version) hooks_.shown(live);
}

}  // namespace perseus::live
