// Protocol by which a training process requests a helper from the node's perseus-clockd daemon.
//
// The request is one message with file descriptors on a Unix socket. After it the connection is the helper's channel:
// a HelperHello comes back, and closing the connection ends the helper.
//
// Input:   the daemon's socket; the GPU, by a name that identifies it also outside the container.
// Output:  file descriptors: mailbox, eventfd, and the GPU's device node, which the client has opened itself. That
//          proves that the client may use the GPU: the daemon cannot see the device cgroup of a container.
// Errors:  DeviceError no_driver (no daemon responds), no_permission (this user may not open the socket).
// Cost:    a connection per helper, none per clock.
// Threads: any.
// Source:  docs/decisions/0027-node-daemon-and-leases-by-uuid.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/clock_control/start_helper.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {

inline constexpr const char* kDaemonSocket = "/run/perseus/clockd.sock";

struct DaemonRequest {
  static constexpr std::uint32_t kMagic = 0x50434c44;
  std::uint32_t magic = kMagic;
  std::int32_t ceiling_mhz = 0;
  std::array<char, 32> version{};
  std::array<char, 512> selector{};  ///< see stable_selector()
};

/// Path of the daemon's socket; empty: use no daemon. `given`, else $PERSEUS_CLOCKD_SOCKET, else kDaemonSocket if it
/// exists; "none" in either: no daemon.
std::string daemon_socket(const std::string& given);

bool daemon_listens(const std::string& socket);

/// Requests a helper. Returns the channel.
device::DeviceResult<OwnedFd> ask_daemon(const std::string& socket, const std::string& device, Megahertz ceiling,
                                         int mailbox, int wake);
/// PID of the process that listens on that connection; 0: it has none in this PID namespace.
pid_t listener_of(int connection);

struct ReceivedRequest {
  DaemonRequest request;
  std::vector<OwnedFd> fds;
};
/// The daemon's side; nullopt: the message is no request.
std::optional<ReceivedRequest> receive_request(int connection);

}  // namespace perseus::clock_control
