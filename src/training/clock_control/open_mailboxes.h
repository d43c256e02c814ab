// Mailboxes of this process's clock controllers, for its end: at exit the helpers give all clocks back.
//
// Problem: if this process is process 1 of a container, its end kills the helper too, so the clock must be given back
//          before. A forked child owns no helper.
// Input:   mailboxes of controllers, while they live.
// Output:  at exit, a request to unlock in each mailbox of this process; waits up to 2 s for the helpers' answers. A
//          line on standard error for each clock that stays locked.
// Errors:  none; if another thread holds the lock at exit, nothing is requested.
// Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "training/clock_control/mailbox.h"

namespace perseus::clock_control {

/// Number of forks between the process that loaded this code and this process; counted from prepare_process() on.
/// Inline: every call of ClockController::set() reads it.
inline std::atomic<int>& fork_generation() {
  static std::atomic<int> generation{0};
  return generation;
}

/// Counts forks, and gives clocks back at exit, from now on.
void prepare_process();

/// `wake`: the eventfd of the helper; `generation`: of the process that owns the mailbox; `left_locked`: at exit, once
/// no helper works: gives a locked clock back, or returns what is to be said of it.
void add_open_mailbox(Mailbox& mailbox, int wake, int generation, std::function<std::string()> left_locked);
void remove_open_mailbox(const Mailbox* mailbox);

}  // namespace perseus::clock_control
