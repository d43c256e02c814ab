#include "training/clock_control/urgency.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <thread>

namespace perseus::clock_control {
namespace {

constexpr rlim_t kRunaway_us = 1'000'000, kEnd_us = 10'000'000;  // without a blocking call

bool become_real_time() {
  const sched_param lowest{1};
  return ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0;
}

void lose_real_time(int /*signal*/) {
  const sched_param none{0};
  ::sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);  // only privileges may drop the flag
}

}  // namespace

Urgency become_urgent() {
  ::signal(SIGXCPU, lose_real_time);
  const rlimit at_most_us{kRunaway_us, kEnd_us};
  ::setrlimit(RLIMIT_RTTIME, &at_most_us);
  if (become_real_time()) return Urgency::real_time;
  const bool nice = ::setpriority(PRIO_PROCESS, 0, -10) == 0;
  (void)::prctl(PR_SET_TIMERSLACK, 1);  // ns; 50 us otherwise, half a nap
  // Short time slices need no privileges (Linux 6.12) and start sooner after waking up.
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } const slice{48, SCHED_OTHER, 0, ::getpriority(PRIO_PROCESS, 0), 0, 100'000, 0, 0};
  (void)::syscall(SYS_sched_setattr, 0, &slice, 0);
  return nice ? Urgency::negative_nice : Urgency::none;
}

Urgency obtainable_urgency() {
  Urgency got = Urgency::none;
  std::thread([&got] {
    if (become_real_time()) {
      got = Urgency::real_time;
    } else if (::setpriority(PRIO_PROCESS, 0, -10) == 0) {
      got = Urgency::negative_nice;
    }
  }).join();
  return got;
}

}  // namespace perseus::clock_control
