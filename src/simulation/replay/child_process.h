// A child process that ends with its parent, however the parent ends.
//
// The child is in a process group of its own (Ctrl-C reaches the parent alone, which then ends its children in order)
// and gets SIGKILL when the parent dies.
//
// Problem: a replay is many processes; none may outlive it, and a dead one must be distinguishable from a finished
//          one.
// Input:   a program, its arguments, descriptors that it inherits under the same numbers, the destination of its
//          output.
// Output:  the running child.
// Errors:  unavailable naming the program and why it cannot run.
// Cost:    a fork.
// Threads: start() from the main thread, since the kernel ties the child to the thread that created it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/owned_fd.h"
#include "base/result.h"

namespace perseus::replay {

struct ChildOptions {
  std::vector<std::string> command;  ///< program (a path) and arguments
  std::vector<int> inherited;        ///< descriptors
  std::string error_file;            ///< standard error appends to it; empty: the parent's
  bool pipe_output = false;          ///< standard output can be read; else it goes to standard error
};

class ChildProcess {
 public:
  static Result<ChildProcess> start(const ChildOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  ///< SIGKILL, if it still runs

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Its end, if it has ended: 0, or a description.
  struct End {
    bool in_order = false;  ///< exit code 0
    std::string how;        ///< "was killed by signal 9", "ended with exit code 70"
  };
  const std::optional<End>& ended();
  /// Waits for its end at most that long; false: it still runs.
  bool wait(double limit_s);
  /// The next line of its output, without its end; empty after the limit or at the end of its output.
  std::string read_line(double limit_s);

 private:
  ChildProcess(pid_t pid, int output) : pid_(pid), output_(output) {}
  pid_t pid_ = -1;
  OwnedFd output_;
  std::string unread_;
  std::optional<End> end_;
};

}  // namespace perseus::replay
