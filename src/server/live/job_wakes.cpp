#include "server/live/job_wakes.h"

#include <vector>

namespace perseus::live {

void JobWakes::put(double at_s, const std::string& id) {
  wakes_.emplace(at_s, id);
  set_alarm();
}

void JobWakes::erase(double at_s, const std::string& id) {
  wakes_.erase({at_s, id});
  set_alarm();
}

void JobWakes::set(LiveJob& live, double now_s) {
  // What the store has refused is tried again at the wake of JobCache::go_on_as_shown().
  if (live.shown.is_late()) return;
  const auto next = hooks_.due_s(live, now_s);
  if (next == live.wake_s && (!next || wakes_.contains({*next, live.job.id}))) return;
  forget(live);
  if (const auto row = index_.find(live.job.id); row != index_.end() && row->second.next_wake_s) {
    erase(*row->second.next_wake_s, live.job.id);
  }
  live.wake_s = next;
  if (next) put(*next, live.job.id);
}

void JobWakes::wake_due(double now_s) {
  std::vector<std::string> due;
  while (!wakes_.empty() && wakes_.begin()->first <= now_s) {
    due.push_back(wakes_.begin()->second);
    wakes_.erase(wakes_.begin());
  }
  set_alarm();
  for (const std::string& id : due) hooks_.wake(id);
}

void JobWakes::set_to(LiveJob& live, double at_s) {
  forget(live);
  live.wake_s = at_s;
  put(at_s, live.job.id);
}

void JobWakes::forget(const LiveJob& live) {
  if (live.wake_s) erase(*live.wake_s, live.job.id);
}

}  // namespace perseus::live
