#include "training/clock_control/daemon_protocol.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "training/device/open_gpu.h"

namespace perseus::clock_control {
namespace {

constexpr std::size_t kMostFds = 3;

template <std::size_t N>
void put(std::array<char, N>& into, const std::string& text) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), into.data());
}

bool is_socket(const char* path) {
  struct stat about {};
  return ::stat(path, &about) == 0 && S_ISSOCK(about.st_mode);
}

bool send_with_fds(int connection, const DaemonRequest& request, const std::vector<int>& fds) {
  iovec part{const_cast<DaemonRequest*>(&request), sizeof request};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  return ::sendmsg(connection, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof request);
}

device::DeviceError no_daemon(const std::string& socket, device::DeviceFault fault, const std::string& why) {
  return {fault, fmt::format("no clock daemon at {}: {}", socket, why)};
}

device::DeviceResult<OwnedFd> connect_to(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) {
    return no_daemon(socket, device::DeviceFault::no_driver,
                     fmt::format("its path has {} bytes; allowed: up to 107", socket.size()));
  }
  std::memcpy(address.sun_path, socket.data(), socket.size());
  OwnedFd connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!connection.valid()) return no_daemon(socket, device::DeviceFault::no_driver, std::strerror(errno));
  // A suspended daemon must not block the training process.
  const timeval limit{2, 0};
  ::setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    return no_daemon(socket, error == EACCES ? device::DeviceFault::no_permission : device::DeviceFault::no_driver,
                     std::strerror(error));
  }
  return connection;
}

}  // namespace

std::string daemon_socket(const std::string& given) {
  const char* named = ::secure_getenv("PERSEUS_CLOCKD_SOCKET");
  std::string only = !given.empty() ? given : named != nullptr ? named : "";
  if (only == "none") return {};
  if (!only.empty()) return only;
  return is_socket(kDaemonSocket) ? kDaemonSocket : "";
}

device::DeviceResult<OwnedFd> ask_daemon(const std::string& socket, const std::string& device, Megahertz ceiling,
                                         int mailbox, int wake) {
  auto connection = connect_to(socket);
  if (!connection) return connection;
  // Only this process knows which GPU its index means.
  const auto gpu = device::open_gpu(device);
  if (!gpu) return gpu.error();
  const device::GpuIdentity& identity = (*gpu)->identity();
  DaemonRequest request;
  request.ceiling_mhz = ceiling.value();
  put(request.version, PERSEUS_VERSION);
  put(request.selector, device::stable_selector(identity, device));
  const OwnedFd node(identity.node.empty() ? -1 : ::open(identity.node.c_str(), O_RDWR | O_CLOEXEC));
  std::vector<int> fds{mailbox, wake};
  if (node.valid()) fds.push_back(node.get());
  if (!send_with_fds(connection->get(), request, fds)) {
    return no_daemon(socket, device::DeviceFault::no_driver, std::strerror(errno));
  }
  return connection;
}

bool daemon_listens(const std::string& socket) { return !socket.empty() && connect_to(socket).ok(); }

pid_t listener_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

std::optional<ReceivedRequest> receive_request(int connection) {
  ReceivedRequest received;
  iovec part{&received.request, sizeof received.request};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return std::nullopt;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  DaemonRequest& request = received.request;
  request.version.back() = request.selector.back() = 0;
  const bool whole = got == sizeof request && request.magic == DaemonRequest::kMagic &&
                     (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && received.fds.size() >= 2;
  if (!whole) return std::nullopt;
  return received;
}

}  // namespace perseus::clock_control
