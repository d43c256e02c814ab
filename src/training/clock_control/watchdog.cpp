#include "training/clock_control/watchdog.h"

namespace perseus::clock_control {
namespace {

constexpr std::int64_t kFirstCalls = 8;
constexpr std::int64_t kAskOwnerEvery = 1'000'000'000;

bool stopped(char state) { return state == 'T' || state == 't'; }

}  // namespace

Watchdog::Advice Watchdog::look(const Seen& seen) {
  const bool late = last_ns_ != 0 && seen.now_ns - last_ns_ > 3 * kTick;
  last_ns_ = seen.now_ns;
  if (!seen.busy) {
    woken_ns_ = owner_stopped_ns_ = last_ns_ = 0;
    return Advice::sleep;
  }
  if (owner_is_suspended(seen.now_ns)) return Advice::owner_suspended;
  // This process got no core either, so the worker's silence proves nothing.
  if (late) {
    woken_ns_ = 0;
    return Advice::look_again;
  }
  std::int64_t overdue_ns = 0;
  const bool in_call = seen.call_began_ns != 0;
  if (in_call) {
    woken_ns_ = 0;
    overdue_ns = seen.now_ns - seen.call_began_ns - (seen.calls < kFirstCalls ? kPatience : kCallLimit);
  } else if (woken_ns_ != 0 && seen.looked_ns < woken_ns_) {
    overdue_ns = seen.now_ns - woken_ns_ - kAnswerLimit;
  } else {
    woken_ns_ = 0;
    if (seen.now_ns - seen.looked_ns < kTick) return Advice::look_again;
    woken_ns_ = seen.now_ns;
    return Advice::wake_worker;
  }
  if (overdue_ns < 0) return Advice::look_again;
  const char state = worker_();
  const bool waits = stopped(state) || state == 'S' || (state == 'D' && in_call);
  return waits || overdue_ns > kPatience ? Advice::worker_hangs : Advice::look_again;
}

bool Watchdog::owner_is_suspended(std::int64_t now_ns) {
  if (now_ns - owner_asked_ns_ >= kAskOwnerEvery) {
    owner_asked_ns_ = now_ns;
    if (!stopped(owner_())) {
      owner_stopped_ns_ = 0;
    } else if (owner_stopped_ns_ == 0) {
      owner_stopped_ns_ = now_ns;
    }
  }
  return owner_stopped_ns_ != 0 && now_ns - owner_stopped_ns_ >= kSuspendedAfter;
}

}  // namespace perseus::clock_control
