#include "simulation/replay/peer_links.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace perseus::replay {
namespace {

constexpr std::uint32_t kMagic = 0x50525352;
constexpr std::uint32_t kMostPayload = 1U << 24U;
constexpr int kLookUp_ms = 100;  // interval at which a long wait checks for a request to end

struct Header {
  std::uint32_t magic, kind;
  std::int64_t iteration;
  double time_s;
  std::int32_t about;
  std::uint32_t payload_bytes;
};

Error gone(int peer) { return {ErrorCode::unavailable, fmt::format("worker {} has ended", peer)}; }
Error stopped() { return {ErrorCode::unavailable, "stopped"}; }

}  // namespace

PeerLinks::PeerLinks(std::map<int, int> sockets, std::function<bool()> stopping) : stopping_(std::move(stopping)) {
  for (const auto& [peer, descriptor] : sockets) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    links_[peer].descriptor = descriptor;
  }
}

PeerLinks::~PeerLinks() {
  for (auto& [peer, link] : links_) close(link.descriptor);
}

Status PeerLinks::send(int peer, const Message& message) {
  const Header header{
      kMagic,        static_cast<std::uint32_t>(message.kind),          message.iteration, message.time_s,
      message.about, static_cast<std::uint32_t>(message.payload.size())};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes += message.payload;
  const int descriptor = links_.at(peer).descriptor;
  const std::lock_guard one(sending_);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::send(descriptor, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (Status waited = wait(descriptor, kLookUp_ms); !waited) return waited;
    } else if (errno != EINTR) {
      return gone(peer);
    }
  }
  return Ok{};
}

Result<Message> PeerLinks::receive(int peer, MessageKind kind, std::int64_t iteration, std::int32_t about) {
  const Key key{peer, kind, iteration, about};
  while (true) {
    {
      const std::lock_guard lock(reading_);
      if (const auto found = arrived_.find(key); found != arrived_.end()) {
        Message message = std::move(found->second);
        arrived_.erase(found);
        return message;
      }
      if (links_.at(peer).closed) return gone(peer);
    }
    if (const Status waited = wait(-1, kLookUp_ms); !waited) return waited.error();
  }
}

std::optional<PeerLinks::From> PeerLinks::take(MessageKind kind) {
  const std::lock_guard lock(reading_);
  auto oldest = arrived_.end();
  for (auto it = arrived_.begin(); it != arrived_.end(); ++it) {
    if (std::get<1>(it->first) != kind) continue;
    if (oldest == arrived_.end() || it->second.iteration < oldest->second.iteration) oldest = it;
  }
  if (oldest == arrived_.end()) return {};
  From from{std::get<0>(oldest->first), std::move(oldest->second)};
  arrived_.erase(oldest);
  return from;
}

bool PeerLinks::closed(int peer) const {
  const std::lock_guard lock(reading_);
  return links_.at(peer).closed;
}

Status PeerLinks::look(int limit_ms) { return wait(-1, limit_ms); }

Status PeerLinks::wait(int writable, int limit_ms) {
  if (stopping_ && stopping_()) return stopped();
  std::vector<pollfd> polled;
  std::vector<int> peers;
  {
    const std::lock_guard lock(reading_);
    for (auto& [peer, link] : links_) {
      if (link.closed && link.descriptor != writable) continue;
      polled.push_back({link.descriptor, static_cast<short>(POLLIN | (link.descriptor == writable ? POLLOUT : 0)), 0});
      peers.push_back(peer);
    }
  }
  if (poll(polled.data(), polled.size(), limit_ms) < 0 && errno != EINTR) {
    return Error{ErrorCode::internal, fmt::format("poll: {}", std::strerror(errno))};
  }
  const std::lock_guard lock(reading_);
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    if (Status done = read(peers[i], links_.at(peers[i])); !done) return done;
  }
  return Ok{};
}

Status PeerLinks::read(int peer, Link& link) {
  std::array<char, 65536> buffer;
  while (!link.closed) {
    const ssize_t n = recv(link.descriptor, buffer.data(), buffer.size(), 0);
    if (n > 0) {
      link.unread.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      link.closed = true;
    } else {
      break;
    }
  }
  std::size_t at = 0;
  while (link.unread.size() - at >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, link.unread.data() + at, sizeof header);
    if (header.magic != kMagic || header.payload_bytes > kMostPayload) {
      return Error{ErrorCode::internal, fmt::format("worker {} sent an invalid message", peer)};
    }
    if (link.unread.size() - at - sizeof header < header.payload_bytes) break;
    Message message{static_cast<MessageKind>(header.kind), header.iteration, header.about, header.time_s,
                    link.unread.substr(at + sizeof header, header.payload_bytes)};
    at += sizeof header + header.payload_bytes;
    const Key key{peer, message.kind, message.iteration, message.about};
    if (!arrived_.emplace(key, std::move(message)).second) {
      return Error{ErrorCode::internal, fmt::format("worker {} sent message {} of iteration {} twice", peer,
                                                    header.about, header.iteration)};
    }
  }
  link.unread.erase(0, at);
  return Ok{};
}

std::string payload_of(std::int64_t iteration, std::int32_t about, std::size_t bytes) {
  std::string payload(bytes, '\0');
  auto state = static_cast<std::uint64_t>(iteration) * 0x9e3779b97f4a7c15U + static_cast<std::uint32_t>(about) + 1;
  for (char& byte : payload) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<char>(state >> 56U);
  }
  return payload;
}

Result<std::pair<int, int>> socket_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{ErrorCode::unavailable, fmt::format("socketpair: {}", std::strerror(errno))};
  }
  return std::pair(ends[0], ends[1]);
}

}  // namespace perseus::replay
