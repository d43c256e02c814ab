// CPU seconds that a thread has used.
#pragma once

#include <ctime>

namespace perseus {

/// By a clock of clock_gettime(2), such as pthread_getcpuclockid() gives.
inline double cpu_s_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  constexpr double ns = 1e-9;
  return static_cast<double>(now.tv_sec) + ns * static_cast<double>(now.tv_nsec);
}
/// Of the calling thread.
inline double thread_cpu_s() { return cpu_s_of(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace perseus
