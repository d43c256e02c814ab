// Makes a write beyond the file size limit (ulimit -f) fail with EFBIG instead of killing the program.
//
// Output:  this process and its child processes ignore SIGXFSZ.
// Cost:    one system call.
// Threads: call it at the start of main().
#pragma once

#include <csignal>

namespace perseus {

inline void fail_writes_at_file_size_limit() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace perseus
