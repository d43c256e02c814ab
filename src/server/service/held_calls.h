// Open calls (waits for plans and event streams), counted by token and address.
//
// Problem: a token that is revoked or expires must not keep receiving through calls that it opened before; one token
//          or one address must not use up all capacity.
// Input:   the caller's identity and address, and a function that ends the call.
// Output:  end_unless() ends all calls whose identity is no longer valid; full() gives the reason if a caller has
//          reached its limit.
// Errors:  none.
// Cost:    one entry of a hash table per open call; end_unless() visits all of them.
// Threads: io thread.
// Source:  docs/decisions/0034.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/http/address_counts.h"
#include "server/service/tokens.h"

namespace perseus::service {

/// Limits on calls open at a time. Without tokens there is no limit per token; loopback has no limit.
struct HeldLimits {
  std::size_t waits_per_token = 16384;
  std::size_t streams_per_token = 256;
  std::size_t streams_per_address = 256;
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
  struct Held {
    Caller caller;
    std::function<void()> end;
  };
  using Counts = std::unordered_map<std::string, std::size_t>;
  static std::size_t count_of(const Counts& counts, const std::string& key);
  static void give_back(Counts& counts, const std::string& key, std::size_t count = 1);
  void forget(const Caller& caller);

  HeldLimits limits_;
  std::unordered_map<Id, Held> calls_;
  Counts waits_of_token_, streams_of_token_, streams_of_address_;
  Id last_ = 0;
};

}  // namespace perseus::service
