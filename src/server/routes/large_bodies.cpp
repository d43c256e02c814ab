#include "server/routes/large_bodies.h"

namespace perseus::routes {

bool LargeBodies::add(const std::string& token, std::size_t bytes, Work work) {
  constexpr std::size_t most = std::size_t{128} << 20U;
  OfToken& bodies = of_token_[token];
  const bool too_many = (bytes_ > 0 && bytes_ + bytes > most) || (bodies.bytes > 0 && bodies.bytes + bytes > most / 2);
  if (too_many) {
    if (bodies.waiting.empty()) of_token_.erase(token);
    return false;
  }
  bodies.bytes += bytes;
  bytes_ += bytes;
  if (!bodies.waiting.empty()) {
    bodies.waiting.push_back({bytes, std::move(work)});
    return true;
  }
  bodies.waiting.push_back({bytes, nullptr});
  start(token, std::move(work));
  return true;
}

void LargeBodies::start(const std::string& token, Work work) {
  // What the work holds must not end on the other thread.
  reader_->read_large([this, token, work = std::move(work)]() mutable -> std::function<void()> {
    return [this, token, then = std::exchange(work, nullptr)()] {
      ended(token);
      if (then) then();
    };
  });
}

void LargeBodies::ended(const std::string& token) {
  const auto found = of_token_.find(token);
  OfToken& bodies = found->second;
  const std::size_t bytes = bodies.waiting.front().bytes;
  bodies.waiting.pop_front();
  bodies.bytes -= bytes;
  bytes_ -= bytes;
  if (bodies.waiting.empty()) return void(of_token_.erase(found));
  start(token, std::move(bodies.waiting.front().work));
}

}  // namespace perseus::routes
