#include "server/planning_queue.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace perseus::server {
namespace {

constexpr double kForgotten = 1e-6;  // planner seconds

}  // namespace

void PlanningQueue::put(const std::string& key, Kind kind, std::set<std::string> owners) {
  const auto [entry, is_new] = entries_.try_emplace(key);
  if (is_new || entry->second.kind != kind) entry->second.came = ++came_;
  entry->second.kind = kind;
  entry->second.owners = std::move(owners);
}

void PlanningQueue::remove(const std::string& key) { entries_.erase(key); }

std::pair<int, double> PlanningQueue::used_by(const std::string& owner, double now_s) const {
  const auto found = used_.find(owner);
  if (found == used_.end()) return {0, 0};
  const Used& used = found->second;
  return {used.running, used.planner_s * std::exp2(-std::max(0.0, now_s - used.at_s) / kHalfLife)};
}

std::optional<PlanningQueue::Next> PlanningQueue::take(Kind kind, double now_s) {
  using Turn = std::tuple<int, double, std::uint64_t>;
  std::optional<Next> next;
  Turn least;
  for (const auto& [key, entry] : entries_) {
    if (entry.kind != kind) continue;
    for (const std::string& owner : entry.owners) {
      const auto [running, planner_s] = used_by(owner, now_s);
      const Turn turn{running, planner_s, entry.came};
      if (next && !(turn < least)) continue;
      next = Next{key, owner};
      least = turn;
    }
  }
  if (!next) return std::nullopt;
  entries_.erase(next->key);
  ++used_[next->owner].running;
  return next;
}

void PlanningQueue::done(const std::string& owner, double planner_s, double now_s) {
  const auto [running, before_s] = used_by(owner, now_s);
  used_[owner] = {std::max(0, running - 1), before_s + planner_s, now_s};
  std::erase_if(
      used_, [&](const auto& one) { return one.second.running == 0 && used_by(one.first, now_s).second < kForgotten; });
}

std::int64_t PlanningQueue::waiting(Kind kind) const {
  return std::ranges::count_if(entries_, [&](const auto& entry) { return entry.second.kind == kind; });
}

}  // namespace perseus::server
