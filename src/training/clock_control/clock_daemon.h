// perseus-clockd as the node's daemon: runs outside of containers, owns the clocks of the node's GPUs, and gives them
// back when a container ends with all of its processes at once.
//
// A client connects over a Unix socket (daemon_protocol.h). Per client the daemon forks a helper, the same supervisor
// and worker that a training process would start itself (helper_process.h). A pidfd from the socket's peer
// credentials tracks the client's life, so the daemon sees its end across PID namespaces.
//
// Input:   options; clients.
// Output:  log lines on standard error. Helpers survive a killed daemon and give back as usual; the next daemon
//          restores the remaining clocks. SIGTERM and SIGINT end all helpers, which give their clocks back.
// Errors:  exit code 69: the socket cannot be opened, another daemon runs (neither leaves a file behind), or a clock
//          could not be given back. The daemon refuses a client with the reason: another client holds the GPU, the
//          client cannot open the GPU's device node, the message is no request.
// Cost:    one sleeping process, two per client.
// Threads: none; call it in a process without other threads.
// Source:  docs/decisions/0027-node-daemon-and-leases-by-uuid.md.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/units.h"

namespace perseus::clock_control {

struct DaemonOptions {
  std::string socket;          ///< path, see can_be_socket_path()
  std::optional<gid_t> group;  ///< owner of the socket; none: the daemon's group
  mode_t mode = 0666;          ///< of the socket: which users may connect. The device node decides which GPU a client
                               ///< may use
  Megahertz ceiling;           ///< of an administrator; 0: none
  bool simulated = false;      ///< also serve simulated GPUs, whose files clients name; for tests
};

/// True if the path and its temporary neighbor fit into a socket's address.
bool can_be_socket_path(const std::string& path);

/// Serves until SIGTERM or SIGINT. Returns the exit code.
int run_clock_daemon(const DaemonOptions& options);

}  // namespace perseus::clock_control
