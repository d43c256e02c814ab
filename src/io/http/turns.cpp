#include "io/http/turns.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace perseus::http {
namespace {

constexpr int kMostRankPieces = 16;

bool run_one(std::deque<std::function<void()>>& queue) {
  if (queue.empty()) return false;
  const auto work = std::move(queue.front());
  queue.pop_front();
  work();
  return true;
}

}  // namespace

void Turns::add(Kind kind, std::function<void()> work) {
  queues_->of[static_cast<std::size_t>(kind)].push_back(std::move(work));
  post(io_, queues_);
}

void Turns::post(boost::asio::io_context& io, const std::shared_ptr<Queues>& queues) {
  if (std::exchange(queues->posted, true)) return;
  boost::asio::post(io, [&io, weak = std::weak_ptr(queues)] {
    const auto kept = weak.lock();
    if (!kept) return;
    run_turn(*kept);
    kept->posted = false;
    const bool empty = std::ranges::all_of(kept->of, [](const auto& queue) { return queue.empty(); });
    if (!empty) post(io, kept);
  });
}

void Turns::run_turn(Queues& queues) {
  auto& [ranks, readers, streams] = queues.of;
  for (int i = 0; i < kMostRankPieces; ++i) {
    if (!run_one(ranks)) break;
  }
  queues.stream_next = !queues.stream_next;
  auto& first = queues.stream_next ? streams : readers;
  auto& second = queues.stream_next ? readers : streams;
  if (!run_one(first)) run_one(second);
}

}  // namespace perseus::http
