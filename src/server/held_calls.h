// Calls that are kept open: waits for plans and event streams, by whose they are.
//
// Problem: a token that is revoked or expires must not go on hearing what it was allowed to hear when it asked.
// Input: who asked, and what ends the call.
// Output: end_unless() ends all whose identity holds no longer.
// Errors: none.
// Cost: one entry of a hash table per open call; end_unless() looks at all of them.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/tokens.h"

namespace perseus::server {

class HeldCalls {
 public:
  using Id = std::uint64_t;

  Id add(Identity identity, std::function<void()> end) {
    calls_.emplace(++last_, std::pair(std::move(identity), std::move(end)));
    return last_;
  }
  void remove(Id id) { calls_.erase(id); }
  void end_unless(const std::function<bool(const Identity&)>& holds) {
    std::vector<std::function<void()>> ended;
    std::erase_if(calls_, [&](auto& call) {
      if (holds(call.second.first)) return false;
      ended.push_back(std::move(call.second.second));
      return true;
    });
    for (const auto& end : ended) end();
  }

 private:
  std::unordered_map<Id, std::pair<Identity, std::function<void()>>> calls_;
  Id last_ = 0;
};

}  // namespace perseus::server
