// Open calls (waits for plans and event streams), counted by token and address.
//
// Problem: a token that is revoked or expires must not keep receiving through calls that it opened before; one token
//          or one address must not use up all capacity.
// Input:   the caller's identity and address, and a function that ends the call.
// Output:  end_unless() ends all calls whose identity is no longer valid; full() gives the reason if a caller has
//          reached its limit.
// Errors:  none.
// Cost:    80 bytes per open call, since thousands wait; end_unless() visits all of them.
// Threads: io thread.
// Source:  docs/decisions/0034.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "io/http/address_counts.h"
#include "server/access/tokens.h"

namespace perseus::access {

/// Limits on calls open at a time. Without tokens there is no limit per token; loopback has no limit.
struct HeldLimits {
  std::size_t waits_per_token = 16384;
  std::size_t streams_per_token = 256;
  std::size_t streams_per_address = 256;
  bool operator==(const HeldLimits&) const = default;
};

class HeldCalls {
 public:
  using Id = std::uint64_t;
  enum class Kind : unsigned char { wait, stream };
  struct Caller {
    Identity identity;
    std::string address;
    Kind kind = Kind::wait;
    std::size_t waits = 1;  ///< a relay's call waits for many ranks
  };

  explicit HeldCalls(HeldLimits limits = {}) : limits_(limits) {}
  /// Applies to later calls.
  void set_limits(HeldLimits limits) { limits_ = limits; }
  /// The limit that the caller has reached; nothing: none.
  [[nodiscard]] std::optional<std::string> full(const Caller& caller) const;
  Id add(const Caller& caller, std::function<void()> end);
  void remove(Id id);
  void end_unless(const std::function<bool(const Identity&)>& holds);

 private:
  struct Owner {
    Identity identity;
    std::size_t calls = 0, waits = 0, streams = 0;
  };
  struct Address {
    std::string text;
    std::size_t streams = 0;
  };
  struct Held {
    Owner* owner;
    Address* address;   ///< of a stream; null: a wait
    std::size_t waits;  ///< of a wait
    std::function<void()> end;
  };
  static_assert(sizeof(Held) <= 64, "thousands wait: what calls share belongs to Owner");
  void forget(const Held& held);

  HeldLimits limits_;
  std::unordered_map<Id, Held> calls_;
  std::unordered_map<std::string, Owner> owners_;  ///< by token
  std::unordered_map<std::string, Address> addresses_;
  Id last_ = 0;
};

}  // namespace perseus::access
