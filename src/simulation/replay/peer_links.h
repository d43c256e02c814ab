// Messages between the worker processes of a training replay, over sockets that they were born with.
//
// Problem: stages send each other activations and gradients, replicas agree on the end of an iteration; whoever is
// waited for may die. Input: one connected stream socket per peer. Output: send() puts a whole message on its way,
// receive() gives the one asked for, whatever came before it (others are kept). A message carries the moment at which
// the device that made it was done, which may lie a little before the moment it was sent: see
// simulation/replay/iteration.h. Errors: unavailable naming the peer when it has gone; internal when what comes is not
// what a peer sends; interrupted() tells a stop that was asked for. Cost: a system call a message; payloads are
// checked, byte for byte. Threads: any may send(); one at a time may do all else. No deadlock: a sender reads while it
// waits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"

namespace perseus::replay {

enum class MessageKind : std::uint32_t {
  data,      ///< an activation or gradient
  arrived,   ///< its iteration is done, with its share of the gradient
  go_on,     ///< all are, here is what comes next
  command,   ///< from the launcher
  report,    ///< to the launcher
  note,      ///< to the launcher, text
  decision,  ///< of worker 0: what comes next, ahead of the iteration before which it is followed
  farewell   ///< the sender ends in order
};

struct Message {
  MessageKind kind = MessageKind::data;
  std::int64_t iteration = 0;
  std::int32_t about = 0;  ///< data: the dependency; others: who
  double time_s = 0;       ///< CLOCK_MONOTONIC or a virtual clock's
  std::string payload;
};

class PeerLinks {
 public:
  /// `sockets`: peer -> descriptor, taken over. `stopping` is asked whenever a wait is interrupted or lasts; it says
  /// true when this process is to end.
  explicit PeerLinks(std::map<int, int> sockets, std::function<bool()> stopping = {});
  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;
  ~PeerLinks();

  Status send(int peer, const Message& message);
  Result<Message> receive(int peer, MessageKind kind, std::int64_t iteration, std::int32_t about);

  struct From {
    int peer = 0;
    Message message;
  };
  /// Any message of that kind that is here: the oldest iteration's first; nothing otherwise.
  std::optional<From> take(MessageKind kind);
  /// Reads what there is, for at most that long until there is something. An Error if the peers cannot be waited for.
  Status look(int limit_ms);
  [[nodiscard]] bool closed(int peer) const;

 private:
  struct Link {
    int descriptor = -1;
    std::string unread;  ///< bytes of messages that are not whole yet
    bool closed = false;
  };
  using Key = std::tuple<int, MessageKind, std::int64_t, std::int32_t>;

  /// Waits until one of the sockets can be read, or `writable` written; reads what there is.
  Status wait(int writable, int limit_ms);
  Status read(int peer, Link& link);

  std::mutex sending_;          ///< messages are not mixed
  mutable std::mutex reading_;  ///< guards what follows, but for the descriptors
  std::map<int, Link> links_;
  std::function<bool()> stopping_;
  std::map<Key, Message> arrived_;
};

/// Bytes that depend on their name, so that a mixed-up message is seen. Stand for an activation or a gradient.
std::string payload_of(std::int64_t iteration, std::int32_t about, std::size_t bytes);

/// Two connected stream sockets that a program started by exec does not inherit.
Result<std::pair<int, int>> socket_pair();

}  // namespace perseus::replay
