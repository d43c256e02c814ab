// Which signals stop a long-running command, in order.
//
// Problem: by default, most signals end a process at once, and scripts send them by habit (SIGUSR1 to rotate a log).
// Output:  ignore_other_signals(): those that mean nothing here are ignored. A signal with a handler keeps it, for
//          example that of a heap profiler.
// Threads: call it before threads start.
#pragma once

#include <csignal>

namespace perseus::cli {

inline constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGQUIT};

inline void ignore_other_signals() {
  // SIGPIPE: a closed reader is a write error, not the end of the process.
  for (const int signal : {SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) std::signal(signal, SIG_IGN);
  }
}

}  // namespace perseus::cli
