// How a training process asks the node's perseus-clockd daemon for a helper: one message with file descriptors on a
// unix socket. After it the connection is the helper's channel: a HelperHello comes back, and closing it ends the
// helper.
//
// Input:   the daemon's socket; the GPU, named so that it is the same one outside the container.
// Output:  file descriptors: mailbox, eventfd, and the GPU's device node, which the client has opened itself. That is
//          the proof that the client may use the GPU: the daemon cannot see the device cgroup of a container.
// Errors:  DeviceError no_driver (no daemon answers), no_permission (the socket is not for this user).
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

/// Where a daemon is to be asked; empty: nowhere. `given`, else $PERSEUS_CLOCKD_SOCKET, else kDaemonSocket if that is
/// there; "none" as either: nowhere.
std::string daemon_socket(const std::string& given);

bool daemon_listens(const std::string& socket);

/// Asks for a helper. Returns the channel.
device::DeviceResult<OwnedFd> ask_daemon(const std::string& socket, const std::string& device, Megahertz ceiling,
                                         int mailbox, int wake);
/// The number of the process that listens on that connection; 0: it has none in this PID namespace.
pid_t listener_of(int connection);

struct ReceivedRequest {
  DaemonRequest request;
  std::vector<OwnedFd> fds;
};
/// The daemon's side; nothing: it is no request.
std::optional<ReceivedRequest> receive_request(int connection);

}  // namespace perseus::clock_control
