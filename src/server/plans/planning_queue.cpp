#include "server/plans/planning_queue.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace perseus::plans {
namespace {

constexpr double kForgotten = 1e-6;  // planner seconds below which use is dropped
constexpr double kPart = 60;         // seconds of quota use that are counted together

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

std::set<std::string> PlanningQueue::over_quota(double now_s) const {
  std::set<std::string> over;
  for (const auto& [owner, used] : used_) {
    double spent_s = 0;
    for (const Used::Spent& part : used.spent) {
      if (part.since_s + kQuotaOver > now_s) spent_s += part.planner_s;
    }
    if (spent_s > quota_s_) over.insert(owner);
  }
  return over;
}

template <class Visit>
void PlanningQueue::visit_candidates(Kind turn, double now_s, Visit visit) const {
  const std::set<std::string> over = over_quota(now_s);
  const auto is_over = [&](const std::string& owner) { return over.contains(owner); };
  for (const auto& [key, entry] : entries_) {
    const bool all_over = !over.empty() && std::ranges::all_of(entry.owners, is_over);
    if ((all_over ? Kind::refinement : entry.kind) != turn) continue;
    for (const std::string& owner : entry.owners) {
      if (!all_over && is_over(owner)) continue;
      if (visit(key, entry, owner, all_over)) return;
    }
  }
}

bool PlanningQueue::has(Kind turn, double now_s) const {
  bool found = false;
  visit_candidates(turn, now_s, [&](const auto&...) { return found = true; });
  return found;
}

bool PlanningQueue::others_wait(Kind turn, const std::string& owner, double now_s) const {
  bool found = false;
  visit_candidates(turn, now_s, [&](const auto&, const auto&, const std::string& waiting, bool) {
    found = waiting != owner;
    return found;
  });
  return found;
}

std::optional<PlanningQueue::Next> PlanningQueue::take(Kind turn, double now_s) {
  using Place = std::tuple<bool, int, double, std::uint64_t>;
  std::optional<Next> next;
  Place least;
  visit_candidates(turn, now_s, [&](const std::string& key, const Entry& entry, const std::string& owner, bool over) {
    const auto [running, planner_s] = used_by(owner, now_s);
    const Place place{over, running, planner_s, entry.came};
    if (!next || place < least) {
      next = Next{key, owner};
      least = place;
    }
    return false;
  });
  if (!next) return std::nullopt;
  entries_.erase(next->key);
  ++used_[next->owner].running;
  return next;
}

void PlanningQueue::done(const std::string& owner, double planner_s, double now_s) {
  const auto [running, before_s] = used_by(owner, now_s);
  Used& used = used_[owner];
  used.running = std::max(0, running - 1);
  used.planner_s = before_s + planner_s;
  used.at_s = now_s;
  if (used.spent.empty() || used.spent.back().since_s + kPart <= now_s) used.spent.push_back({now_s, 0});
  used.spent.back().planner_s += planner_s;
  for (auto& [name, other] : used_) {
    while (!other.spent.empty() && other.spent.front().since_s + kQuotaOver <= now_s) other.spent.pop_front();
  }
  std::erase_if(used_, [&](const auto& one) {
    return one.second.running == 0 && one.second.spent.empty() && used_by(one.first, now_s).second < kForgotten;
  });
}

std::int64_t PlanningQueue::waiting(Kind kind) const {
  return std::ranges::count_if(entries_, [&](const auto& entry) { return entry.second.kind == kind; });
}

}  // namespace perseus::plans
