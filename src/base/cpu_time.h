// CPU time of a thread, in seconds.
#pragma once

#include <ctime>

namespace perseus {

/// Reads a clock of clock_gettime(2), for example one from pthread_getcpuclockid().
inline double cpu_s_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  constexpr double ns = 1e-9;
  return static_cast<double>(now.tv_sec) + ns * static_cast<double>(now.tv_nsec);
}
/// CPU time of the calling thread.
inline double thread_cpu_s() { return cpu_s_of(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace perseus
