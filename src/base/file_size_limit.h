// A file that may not grow (ulimit -f) fails the write (EFBIG) instead of ending the program without a word.
//
// Output:  SIGXFSZ is ignored, in this process and in those that it starts. Errors:  none. Cost:    one system call.
// Threads: call it at the start of main().
#pragma once

#include <csignal>

namespace perseus {

inline void fail_writes_at_file_size_limit() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace perseus
