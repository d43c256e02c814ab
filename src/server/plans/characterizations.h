// Frontiers by the key of their input: from memory, from the store, or planned once for all jobs that request them.
//
// A pipeline that takes long to plan gets a quick frontier first, under its own key (quick_frontier_key()). It is
// refined when no other planning waits, within a budget of planner seconds.
//
// Problem: planning takes up to minutes and must not be repeated: not for two jobs with the same pipeline, not after a
//          restart; and one job's planning must not block the others'.
// Input:   a key whose input is in the store ("input/KEY"), and the wanter.
// Output:  to all wanters: the quick frontier if there is one, then the full one; each is then also in the store
//          ("frontier/KEY"). On the io thread; inside want() only while the store does not answer.
// Errors:  `unavailable`: the store does not answer, retry; others: the reason why this input has no (full) frontier.
//          Planning without wanters is stopped.
// Cost:    a lookup; planning and reading run on the executor.
// Threads: io thread only.
// Source:  docs/decisions/0033.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/jobs/pipeline_input.h"
#include "server/plans/planning_options.h"
#include "server/plans/planning_queue.h"
#include "server/work/executor.h"
#include "server/work/store_access.h"

namespace perseus::plans {

class Characterizations {
 public:
  using Frontier = std::shared_ptr<const jobs::CharacterizedPipeline>;
  /// Called once, or twice if the first frontier is a quick one (its key tells).
  using Answer = std::function<void(const Result<Frontier>&)>;
  struct Wanter {
    std::string id;     ///< for example of a job; it requests a key once
    std::string owner;  ///< see PlanningQueue
  };

  Characterizations(const PlanningOptions& options, work::StoreAccess& store, const Clock& clock, work::Due& due,
                    work::Executor& executor);
  Characterizations(const Characterizations&) = delete;
  Characterizations& operator=(const Characterizations&) = delete;
  ~Characterizations();

  /// The frontier if it is in memory, otherwise null.
  [[nodiscard]] Frontier known(const std::string& key) const;
  void want(const std::string& key, const Wanter& who, Answer answer);
  /// Calls `then` after the wanters of a frontier that is being read from the store have it, or once it is known that
  /// it must be planned; at once for others.
  void when_read(const std::string& key, std::function<void()> then);
  /// Removes the wanter. Planning without other wanters stops.
  void forget(const std::string& key, const std::string& wanter);

  using TurnOver = std::function<void(double planner_s)>;
  /// Other work for the planners: calls `begin` when it is the owner's turn, with the priority of a first frontier,
  /// and with what to call when the work ends. The keys differ from those of frontiers.
  void in_turn(const std::string& key, const std::string& owner, std::function<void(TurnOver)> begin);

  /// Stops all planning, and starts no more.
  void stop();

  /// The options have changed: applies the quota to later planning.
  void options_changed() { queue_.set_quota(options_.planner_s_per_owner); }

  [[nodiscard]] std::int64_t computed() const { return computed_; }
  [[nodiscard]] std::int64_t failed() const { return failed_; }
  [[nodiscard]] std::int64_t stopped() const { return stopped_; }
  [[nodiscard]] std::int64_t running() const { return static_cast<std::int64_t>(work_.size()); }
  [[nodiscard]] std::int64_t waiting(PlanningQueue::Kind kind) const { return queue_.waiting(kind); }
  [[nodiscard]] std::int64_t under_way(PlanningQueue::Kind kind) const {
    const auto found = under_way_.find(kind);
    return found == under_way_.end() ? 0 : found->second;
  }
  [[nodiscard]] double planner_s() const { return planner_s_; }

 private:
  using Bytes = std::optional<std::string>;
  struct Stored {
    std::string key;  ///< of the quick frontier, if there is only that one
    Bytes bytes;
  };
  struct Wanted {
    std::string owner;
    Answer answer;
  };
  struct Work {
    std::map<std::string, Wanted> wanters;       ///< by id; empty: the work ends as soon as possible
    bool reading = false;                        ///< a read of the store is under way
    std::vector<std::function<void()>> readers;  ///< call them when that is over
    bool queued = false;
    std::optional<std::stop_source> planning;  ///< stops the planner
    std::optional<double> late_s;              ///< without a frontier by then, the log says so
    Frontier quick;                            ///< already delivered
    double slice_s = 0;                        ///< planner seconds of its next refinement before others have their turn
  };
  /// One planning: its kind of turn and its owner.
  struct Turn {
    PlanningQueue::Kind kind = PlanningQueue::Kind::first;
    std::string owner;
    std::shared_ptr<std::atomic<bool>> others_wait;  ///< true if other owners wait for such a turn
  };
  struct Planned {
    Frontier frontier;
    std::string bytes;
    std::optional<Error> error;
    double planner_s = 0;
    bool over_budget = false;
    bool turn_is_over = false;
  };

  void start(const std::string& key);
  void reading_is_over(const std::string& key);
  void read_frontier(const std::string& key, const std::string& blob_key, std::string bytes);
  void enqueue(const std::string& key);
  void start_next();
  void compute(const std::string& key, const Turn& turn);
  void compute(const std::string& key, const Turn& turn, std::string text);
  void turn_is_over(const Turn& turn, double planner_s);
  void planned(const std::string& key, Planned planned);
  void save(const std::string& key, Frontier frontier, std::string bytes);
  void offer_quick(const std::string& key, const Frontier& quick);
  void finish(const std::string& key, Result<Frontier> result);
  void remember(const Frontier& frontier);
  void look_for_late(double now_s);
  void log_late(const Work& work) const;
  void set_alarm();

  const PlanningOptions& options_;
  work::StoreAccess& store_;
  const Clock& clock_;
  work::AlarmOf<&Characterizations::look_for_late> alarm_;
  work::Executor& executor_;
  std::map<std::string, std::weak_ptr<const jobs::CharacterizedPipeline>> known_;
  std::deque<Frontier> recent_;  ///< cached though no job holds them
  std::map<std::string, Work> work_;
  std::map<std::string, std::function<void(TurnOver)>> others_;  ///< waiting for their turn
  PlanningQueue queue_;
  std::map<PlanningQueue::Kind, int> under_way_;
  std::vector<Turn> refining_;                                    ///< turns of refinements in progress
  double next_late_s_ = std::numeric_limits<double>::infinity();  ///< no late_s is before it
  bool stopping_ = false;
  bool starting_ = false;
  std::int64_t computed_ = 0;
  std::int64_t failed_ = 0;
  std::int64_t stopped_ = 0;
  double planner_s_ = 0;
};

}  // namespace perseus::plans
