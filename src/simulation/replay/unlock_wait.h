// Decides how long to wait for clock helpers to give their clocks back after the training has ended.
//
// Problem: helpers end by themselves, but a busy machine may delay them for longer than any fixed time, and a helper
//          whose two processes are both killed never gives its clock back.
// Input:   look(), repeatedly, with the time (so that tests control it), the GPUs whose clocks are locked, and the
//          helper processes, read before the locks: then a lock without a process has been left behind.
// Output:  the action to take.
// Cost:    a comparison with what was seen before.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace perseus::replay {

class UnlockWait {
 public:
  /// In which nothing changes. A supervisor waits two seconds for its worker, then five for the worker's lease.
  static constexpr double kSilence_s = 15;

  struct Helper {
    pid_t pid = 0;
    char state = 0;      ///< as in /proc/PID/stat
    long cpu_ticks = 0;  ///< time on a processor
    bool operator==(const Helper&) const = default;
  };
  struct Seen {
    std::vector<Helper> helpers;
    std::vector<int> locked;
    bool operator==(const Seen&) const = default;
  };
  enum class Advice {
    done,       ///< no clock is locked
    wait,       ///< helpers are at work: look again
    give_back,  ///< no helper is left: unlock in their place, then look again
    stuck,      ///< nothing has changed for kSilence_s, and no helper waits for a processor
  };

  Advice look(double now_s, Seen seen);

 private:
  Seen before_;
  double changed_s_ = 0;
  bool looked_ = false;
};

/// "process 12 (state S), process 13 (state R)"; "no process": none.
std::string text_of(const std::vector<UnlockWait::Helper>& helpers);

}  // namespace perseus::replay
