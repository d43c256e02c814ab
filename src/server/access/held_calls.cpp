#include "server/access/held_calls.h"

#include <fmt/format.h>

#include <utility>

namespace perseus::access {

std::optional<std::string> HeldCalls::full(const Caller& caller) const {
  const std::string& token = caller.identity.token;
  const auto owner = owners_.find(token);
  const std::size_t waits = (owner == owners_.end() ? 0 : owner->second.waits) + caller.waits;
  if (caller.kind == Kind::wait) {
    if (token.empty() || waits <= limits_.waits_per_token) return std::nullopt;
    return fmt::format("waits for plans of the token {}: {}; allowed: {}", token, waits, limits_.waits_per_token);
  }
  if (!token.empty() && (owner == owners_.end() ? 0 : owner->second.streams) >= limits_.streams_per_token) {
    return fmt::format("event streams of the token {}: {}; allowed: {}", token, limits_.streams_per_token,
                       limits_.streams_per_token);
  }
  const std::string text = http::counted_address(caller.address);
  const auto address = addresses_.find(text);
  if (!text.empty() && (address == addresses_.end() ? 0 : address->second.streams) >= limits_.streams_per_address) {
    return fmt::format("event streams from {}: {}; allowed: {}", text, limits_.streams_per_address,
                       limits_.streams_per_address);
  }
  return std::nullopt;
}

HeldCalls::Id HeldCalls::add(const Caller& caller, std::function<void()> end) {
  Owner& owner = owners_.try_emplace(caller.identity.token, Owner{caller.identity}).first->second;
  ++owner.calls;
  Held held{&owner, nullptr, 0, std::move(end)};
  if (caller.kind == Kind::wait) {
    owner.waits += held.waits = caller.waits;
  } else {
    const std::string text = http::counted_address(caller.address);
    held.address = &addresses_.try_emplace(text, Address{text}).first->second;
    ++held.address->streams;
    ++owner.streams;
  }
  calls_.emplace(++last_, std::move(held));
  return last_;
}

void HeldCalls::forget(const Held& held) {
  Owner& owner = *held.owner;
  owner.waits -= held.waits;
  if (held.address != nullptr) {
    --owner.streams;
    if (--held.address->streams == 0) addresses_.erase(std::string(held.address->text));
  }
  if (--owner.calls == 0) owners_.erase(std::string(owner.identity.token));
}

void HeldCalls::remove(Id id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  forget(found->second);
  calls_.erase(found);
}

void HeldCalls::end_unless(const std::function<bool(const Identity&)>& holds) {
  std::vector<std::function<void()>> ended;
  std::erase_if(calls_, [&](auto& call) {
    if (holds(call.second.owner->identity)) return false;
    ended.push_back(std::move(call.second.end));
    forget(call.second);
    return true;
  });
  for (const auto& end : ended) end();
}

}  // namespace perseus::access
