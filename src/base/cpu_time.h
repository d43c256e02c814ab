// CPU seconds that the calling thread has used.
#pragma once

#include <ctime>

namespace perseus {

inline double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  constexpr double ns = 1e-9;
  return static_cast<double>(now.tv_sec) + ns * static_cast<double>(now.tv_nsec);
}

}  // namespace perseus
