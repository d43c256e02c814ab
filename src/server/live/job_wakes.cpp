#include "server/live/job_wakes.h"

namespace perseus::live {

void JobWakes::set(LiveJob& live, double now_s) {
  const auto next = hooks_.next_wake(live, now_s);
  if (next == live.wake_s && (!next || wakes_.contains({*next, live.job.id}))) return;
  if (live.wake_s) wakes_.erase({*live.wake_s, live.job.id});
  if (const auto row = index_.find(live.job.id); row != index_.end() && row->second.next_wake_s) {
    wakes_.erase({*row->second.next_wake_s, live.job.id});
  }
  live.wake_s = next;
  if (next) wakes_.emplace(*next, live.job.id);
}

std::vector<std::string> JobWakes::take_due(double now_s) {
  std::vector<std::string> due;
  while (!wakes_.empty() && wakes_.begin()->first <= now_s) {
    due.push_back(wakes_.begin()->second);
    wakes_.erase(wakes_.begin());
  }
  return due;
}

std::optional<double> JobWakes::next() const {
  if (wakes_.empty()) return std::nullopt;
  return wakes_.begin()->first;
}

void JobWakes::set_to(LiveJob& live, double at_s) {
  forget(live);
  live.wake_s = at_s;
  put(at_s, live.job.id);
}

void JobWakes::forget(const LiveJob& live) {
  if (live.wake_s) wakes_.erase({*live.wake_s, live.job.id});
}

}  // namespace perseus::live
