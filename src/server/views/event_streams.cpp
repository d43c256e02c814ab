#include "server/views/event_streams.h"

#include <utility>
#include <vector>

namespace perseus::views {
namespace {

constexpr double kEventsTogether = 0.02;  // s during which events are merged
constexpr std::size_t kMostEventBytes = std::size_t{48} << 10U;

}  // namespace

EventStreams::Id EventStreams::add(http::Responder responder) {
  send();  // earlier events go only to the existing streams
  streams_.emplace(++last_, std::move(responder));
  return last_;
}

void EventStreams::take(std::string_view event, double now_s) {
  if (streams_.empty()) return;
  text_ += event;
  if (text_.size() >= kMostEventBytes) send();
  if (!text_.empty() && !due_s_) due_s_ = now_s + kEventsTogether;
}

void EventStreams::send() {
  due_s_.reset();
  if (text_.empty()) return;
  const auto text = std::make_shared<const std::string>(std::exchange(text_, {}));
  std::vector<http::Responder> streams;  // a stream that is cut removes itself
  streams.reserve(streams_.size());
  for (const auto& [id, responder] : streams_) streams.push_back(responder);
  for (const http::Responder& responder : streams) responder.event(text);
}

}  // namespace perseus::views
