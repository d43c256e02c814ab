#include "server/live/rank_calls.h"

#include <algorithm>

namespace perseus::live {

bool RankCalls::waits(int rank) const {
  return std::ranges::any_of(waiters, [&](const auto& entry) { return entry.second.rank == rank; });
}

std::vector<bool> RankCalls::waiting() const {
  std::vector<bool> waiting;
  for (const auto& [id, waiter] : waiters) {
    if (waiting.size() <= static_cast<std::size_t>(waiter.rank)) waiting.resize(waiter.rank + 1);
    waiting[waiter.rank] = true;
  }
  return waiting;
}

void RankCalls::record(int rank, double now_s) {
  if (last_call_s_.size() <= static_cast<std::size_t>(rank)) {
    last_call_s_.resize(rank + 1);
    ended_.resize(rank + 1);
  }
  last_call_s_[rank] = now_s;
  set_ended(rank, false);
  last_s_ = now_s;
  quiet_since_s = std::min(quiet_since_s, now_s);
}

void RankCalls::heard(int rank, double now_s) {
  if (static_cast<std::size_t>(rank) < last_call_s_.size()) last_call_s_[rank] = std::max(last_call_s_[rank], now_s);
  heard(now_s);
}

void RankCalls::heard(double now_s) {
  last_s_ = std::max(last_s_, now_s);
  quiet_since_s = std::min(quiet_since_s, now_s);
}

void RankCalls::registered(int rank, double now_s) {
  record(rank, now_s);
  set_ended(rank, true);
}

void RankCalls::closed(int rank) {
  if (!waits(rank)) set_ended(rank, true);
}

void RankCalls::forget(int rank) { set_ended(rank, false); }

void RankCalls::set_ended(int rank, bool ended) {
  if (static_cast<std::size_t>(rank) >= ended_.size() || ended_[rank] == ended) return;
  ended_[rank] = ended;
  num_ended_ += ended ? 1 : -1;
}

std::optional<double> RankCalls::last_s(int rank) const {
  const bool heard = static_cast<std::size_t>(rank) < last_call_s_.size() && last_call_s_[rank] > 0;
  return heard ? std::optional(last_call_s_[rank]) : std::nullopt;
}

}  // namespace perseus::live
