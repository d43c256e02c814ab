// perseus-clockd as the node's daemon: it runs outside of containers, owns the clocks of the node's GPUs, and gives
// them back when a container ends with all of its processes at once.
//
// A client connects over a unix socket (daemon_protocol.h). Per client the daemon forks a helper, the same supervisor
// and worker that a training process would start itself (helper_process.h). The client's life is a pidfd from the
// socket's peer credentials, so it is seen across PID namespaces.
//
// Input:   options; clients.
// Output:  log lines on standard error. Helpers survive a daemon that is killed and give back as usual; the next daemon
//          restores what is left. SIGTERM and SIGINT end all helpers, which give their clocks back.
// Errors:  exit code 69: the socket cannot be opened, another daemon runs (neither leaves a file behind), or a clock
// could
//          not be given back. A client
//          is refused with the reason: another client holds the GPU, it cannot open the GPU's device node, no request.
// Cost:    one sleeping process, two per client.
// Threads: none; call it in a process that has no others.
// Source:  docs/decisions/0027-node-daemon-and-leases-by-uuid.md.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/units.h"

namespace perseus::clock_control {

struct DaemonOptions {
  std::string socket;          ///< path, see can_be_socket_path()
  std::optional<gid_t> group;  ///< that owns the socket; none: the daemon's
  mode_t mode = 0666;          ///< of the socket: who may ask. Which GPU a client may use, its device node says
  Megahertz ceiling;           ///< of an administrator; 0: none
  bool simulated = false;      ///< also serve simulated GPUs, whose files clients name: for tests
};

/// It and its temporary neighbor fit into a socket's address.
bool can_be_socket_path(const std::string& path);

/// Serves until SIGTERM or SIGINT. Returns the exit code.
int run_clock_daemon(const DaemonOptions& options);

}  // namespace perseus::clock_control
