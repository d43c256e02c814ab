// Messages between the worker processes of a training replay, over inherited sockets.
//
// A message carries the moment at which the sending device was done, which may lie a little before the moment of
// sending: see simulation/replay/iteration.h. No deadlock: a sender reads while it waits.
//
// Problem: stages send each other activations and gradients, replicas agree on the end of an iteration; a peer may
//          die while others wait for it.
// Input:   one connected stream socket per peer.
// Output:  send() sends a whole message; receive() returns the requested message, in any order of arrival (it keeps
//          others).
// Errors:  unavailable naming the peer when it has gone; internal for data that no peer sends; interrupted()
//          identifies a requested stop.
// Cost:    a system call a message; payloads are checked, byte for byte.
// Threads: any may send(); one at a time may call all else.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "base/result.h"

namespace perseus::replay {

enum class MessageKind : std::uint32_t {
  data,      ///< an activation or gradient
  arrived,   ///< its iteration is done; contains its share of the gradient
  go_on,     ///< all are done; contains the decision about the next iteration
  command,   ///< from the launcher
  report,    ///< to the launcher
  note,      ///< to the launcher, text
  decision,  ///< of worker 0: its decision about an iteration, sent one iteration ahead
  farewell   ///< the sender ends in order
};

struct Message {
  MessageKind kind = MessageKind::data;
  std::int64_t iteration = 0;
  std::int32_t about = 0;  ///< data: the dependency; others: the sender
  double time_s = 0;       ///< CLOCK_MONOTONIC or a virtual clock's
  std::string payload;
};

class PeerLinks {
 public:
  /// `sockets`: peer -> descriptor; takes ownership. `stopping` is called whenever a wait is interrupted or takes
  /// long; it returns true when this process is to end.
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
  /// The received message of that kind with the oldest iteration; nothing if there is none.
  std::optional<From> take(MessageKind kind);
  /// Reads available data; waits for it at most that long. Returns an Error if the peers cannot be waited for.
  Status look(int limit_ms);
  [[nodiscard]] bool closed(int peer) const;

 private:
  struct Link {
    int descriptor = -1;
    std::string unread;  ///< bytes of incomplete messages
    bool closed = false;
  };
  using Key = std::tuple<int, MessageKind, std::int64_t, std::int32_t>;

  /// Waits until one of the sockets is readable, or `writable` is writable; reads available data.
  Status wait(int writable, int limit_ms);
  Status read(int peer, Link& link);

  std::mutex sending_;          ///< keeps messages from mixing
  mutable std::mutex reading_;  ///< guards the members below, except the descriptors
  std::map<int, Link> links_;
  std::function<bool()> stopping_;
  std::map<Key, Message> arrived_;
};

/// Bytes that depend on their name, so that mixed-up messages are detected. They stand for an activation or a
/// gradient.
std::string payload_of(std::int64_t iteration, std::int32_t about, std::size_t bytes);

/// Two connected stream sockets that a program started by exec does not inherit.
Result<std::pair<int, int>> socket_pair();

}  // namespace perseus::replay
