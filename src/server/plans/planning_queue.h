// The order in which pipelines are planned: first frontiers before refinements, and each kind fair among owners.
//
// An owner is the team or token that registered a job; without tokens, each job is its own owner. Next is the owner
// with the fewest plannings in progress, then the one with the fewest recent planner seconds (a second counts half
// after kHalfLife), then the one that has waited longest. An owner that used more than the quota within an hour is
// over quota: keys wanted only by such owners are planned in the turns of refinements, after all those of others.
//
// Input:   a quota of planner seconds; keys with all their owners; the planner seconds that each planning took.
// Output:  the next key, and the owner to whom its planning is charged.
// Errors:  none.
// Cost:    O(waiting keys * their owners) per take(); there are few.
// Threads: one.
// Source:  docs/decisions/0033.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace perseus::plans {

class PlanningQueue {
 public:
  static constexpr double kHalfLife = 600;  ///< seconds
  static constexpr double kQuotaOver = 3600;

  enum class Kind : unsigned char { first, refinement };

  /// Adds the key, or changes its owners; a key waits once.
  void put(const std::string& key, Kind kind, std::set<std::string> owners);
  void remove(const std::string& key);

  struct Next {
    std::string key, owner;
  };
  std::optional<Next> take(Kind turn, double now_s);
  /// True if take() would return something.
  [[nodiscard]] bool has(Kind turn, double now_s) const;
  /// True if an owner other than this one waits for such a turn.
  [[nodiscard]] bool others_wait(Kind turn, const std::string& owner, double now_s) const;
  /// Call when the planning that take() returned for the owner ends.
  void done(const std::string& owner, double planner_s, double now_s);
  void set_quota(double planner_s) { quota_s_ = planner_s; }

  [[nodiscard]] std::int64_t waiting(Kind kind) const;

 private:
  struct Entry {
    Kind kind = Kind::first;
    std::uint64_t came = 0;
    std::set<std::string> owners;
  };
  struct Used {
    int running = 0;
    double planner_s = 0, at_s = 0;
    struct Spent {
      double since_s = 0, planner_s = 0;
    };
    std::deque<Spent> spent;  ///< within kQuotaOver, in parts of a minute
  };
  [[nodiscard]] std::pair<int, double> used_by(const std::string& owner, double now_s) const;
  [[nodiscard]] std::set<std::string> over_quota(double now_s) const;
  /// Calls `visit(key, entry, owner, is_over_quota)` for each candidate of the turn, until it returns true.
  template <class Visit>
  void visit_candidates(Kind turn, double now_s, Visit visit) const;

  std::map<std::string, Entry> entries_;
  std::map<std::string, Used> used_;
  std::uint64_t came_ = 0;
  double quota_s_ = std::numeric_limits<double>::infinity();
};

}  // namespace perseus::plans
