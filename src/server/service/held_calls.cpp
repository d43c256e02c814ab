#include "server/service/held_calls.h"

#include <fmt/format.h>

#include <utility>

namespace perseus::service {

std::size_t HeldCalls::count_of(const Counts& counts, const std::string& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

void HeldCalls::give_back(Counts& counts, const std::string& key, std::size_t count) {
  const auto found = counts.find(key);
  if (found != counts.end() && (found->second -= count) == 0) counts.erase(found);
}

std::optional<std::string> HeldCalls::full(const Caller& caller) const {
  const std::string& token = caller.identity.token;
  if (caller.kind == Kind::wait) {
    if (token.empty() || count_of(waits_of_token_, token) + caller.waits <= limits_.waits_per_token)
      return std::nullopt;
    return fmt::format("waits for plans of the token {}: {}; allowed: {}", token,
                       count_of(waits_of_token_, token) + caller.waits, limits_.waits_per_token);
  }
  if (!token.empty() && count_of(streams_of_token_, token) >= limits_.streams_per_token) {
    return fmt::format("event streams of the token {}: {}; allowed: {}", token, limits_.streams_per_token,
                       limits_.streams_per_token);
  }
  const std::string address = http::counted_address(caller.address);
  if (!address.empty() && count_of(streams_of_address_, address) >= limits_.streams_per_address) {
    return fmt::format("event streams from {}: {}; allowed: {}", address, limits_.streams_per_address,
                       limits_.streams_per_address);
  }
  return std::nullopt;
}

HeldCalls::Id HeldCalls::add(const Caller& caller, std::function<void()> end) {
  if (caller.kind == Kind::wait) {
    waits_of_token_[caller.identity.token] += caller.waits;
  } else {
    ++streams_of_token_[caller.identity.token];
    ++streams_of_address_[http::counted_address(caller.address)];
  }
  calls_.emplace(++last_, Held{caller, std::move(end)});
  return last_;
}

void HeldCalls::forget(const Caller& caller) {
  if (caller.kind == Kind::wait) return give_back(waits_of_token_, caller.identity.token, caller.waits);
  give_back(streams_of_token_, caller.identity.token);
  give_back(streams_of_address_, http::counted_address(caller.address));
}

void HeldCalls::remove(Id id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  forget(found->second.caller);
  calls_.erase(found);
}

void HeldCalls::end_unless(const std::function<bool(const Identity&)>& holds) {
  std::vector<std::function<void()>> ended;
  std::erase_if(calls_, [&](auto& call) {
    if (holds(call.second.caller.identity)) return false;
    forget(call.second.caller);
    ended.push_back(std::move(call.second.end));
    return true;
  });
  for (const auto& end : ended) end();
}

}  // namespace perseus::service
