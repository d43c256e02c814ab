// The priority of the processes that set clocks and give them back: real time where permitted, else a negative nice.
//
// Problem: on Linux 6.18 a group of sessions (sched_autogroup) or a cgroup may keep every CPU for seconds to minutes
//          while other groups are runnable. Real time is outside of these groups; without the permission for it, a
//          helper must be in the group of its training process, so it begins no session.
// Output:  what this process got. A process that computes for a second without a pause loses real time.
// Threads: applies to the calling thread.
#pragma once

namespace perseus::clock_control {

enum class Urgency : unsigned char { none, negative_nice, real_time };

/// Not inherited by children. Replaces the action of SIGXCPU.
Urgency become_urgent();

/// What become_urgent() would get in a process with this one's rights.
Urgency obtainable_urgency();

}  // namespace perseus::clock_control
