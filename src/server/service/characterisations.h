// Frontiers by the key of their input: from memory, from the store, or computed, once for everybody who asks.
//
// Problem: planning takes up to minutes and must not be done twice: not for two jobs with the same pipeline, not by
//          two servers on one database, not again after a restart; and one job's planning must not keep the others
//          from theirs. A pipeline that takes long gets a quick frontier first, under a key of its own
//          (quick_frontier_key()), and is refined when nothing else waits, within a budget of planner seconds.
// Input:   a key whose input is in the store ("input/KEY"), and who wants it.
// Output:  to all who want it: the quick frontier if it has one, then the full one; each is then also in the store
//          ("frontier/KEY"). On the io thread, inside want() only while the store does not answer.
// Errors:  `unavailable`: the store is away, ask again; others: this input has no (full) frontier, and why. Work that
//          another server has claimed is waited for: its result is looked for again every quarter of a lease, and its
//          lease ends if it dies. Planning that nobody wants any more is stopped.
// Cost:    a look-up; planning and reading run on the executor.
// Threads: io thread only.
// Source:  docs/decisions/0033.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/jobs/pipeline_input.h"
#include "server/service/planning_queue.h"
#include "server/service/service.h"
#include "server/service/store_access.h"

namespace perseus::service {

class Characterisations : public std::enable_shared_from_this<Characterisations> {
 public:
  using Frontier = std::shared_ptr<const jobs::CharacterisedPipeline>;
  /// Called once, or twice if the first frontier is a quick one (its key says so).
  using Answer = std::function<void(const Result<Frontier>&)>;
  struct Wanter {
    std::string id;     ///< of a job, say; wants a key once
    std::string owner;  ///< see PlanningQueue
  };

  Characterisations(const ServiceOptions& options, StoreAccess& store, const Clock& clock, Executor& executor);
  Characterisations(const Characterisations&) = delete;
  Characterisations& operator=(const Characterisations&) = delete;
  ~Characterisations();

  /// In memory, or null.
  [[nodiscard]] Frontier known(const std::string& key) const;
  void want(const std::string& key, const Wanter& who, Answer answer);
  /// That wanter is answered no more. Planning that nobody else wants stops.
  void forget(const std::string& key, const std::string& wanter);

  /// Another piece of the planners' work, whose turn has come.
  struct OtherTurn {
    Executor::Kind kind = Executor::Kind::planning;  ///< to be done as that
    std::function<void(double planner_s)> over;      ///< to be called at its end
  };
  /// Calls `begin` when it is the owner's turn, as for a first frontier. The keys have no frontier's name.
  void in_turn(const std::string& key, const std::string& owner, std::function<void(OtherTurn)> begin);

  /// Stops all planning, releases its claims, and starts no other; calls `released` then.
  void stop(std::function<void()> released);

  /// Takes over the budget and the quota, for what is planned from now on.
  void set_limits(const ServiceOptions& options);

  void tick(double now_s);
  [[nodiscard]] std::optional<double> next_wake() const;

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
    std::string key;  ///< of the quick frontier, if that is what there is
    Bytes bytes;
  };
  struct Wanted {
    std::string owner;
    Answer answer;
  };
  struct Work {
    std::map<std::string, Wanted> wanters;  ///< by id; none: it ends as soon as it can
    bool queued = false;
    bool claimed = false;
    std::optional<std::stop_source> planning;  ///< stops the planner
    std::optional<double> look_again_s;        ///< another server is at it
    double renew_s = 0;
    Frontier quick;      ///< was answered
    double slice_s = 0;  ///< planner seconds that its next refinement has before others have their turn
  };
  /// Of one planning: the turn that it takes, and in whose name.
  struct Turn {
    PlanningQueue::Kind kind = PlanningQueue::Kind::first;
    std::string owner;
    std::shared_ptr<std::atomic<bool>> others_wait;  ///< other owners, for such a turn
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
  void read_frontier(const std::string& key, const std::string& blob_key, std::string bytes);
  void enqueue(const std::string& key);
  void start_next();
  void claim_and_compute(const std::string& key, const Turn& turn);
  void compute(const std::string& key, const Turn& turn);
  void compute(const std::string& key, const Turn& turn, std::string text);
  void turn_is_over(const Turn& turn, double planner_s);
  void planned(const std::string& key, Planned planned);
  void save(const std::string& key, Frontier frontier, std::string bytes);
  void offer_quick(const std::string& key, const Frontier& quick);
  void finish(const std::string& key, Result<Frontier> result);
  void remember(const Frontier& frontier);
  void release(const std::string& key, Work& work, std::function<void()> released = {});

  std::string owner_;
  double lease_s_;
  int planners_;
  double budget_s_ = 0, quick_above_s_, slice_s_;
  StoreAccess& store_;
  const Clock& clock_;
  Executor& executor_;
  std::map<std::string, std::weak_ptr<const jobs::CharacterisedPipeline>> known_;
  std::deque<Frontier> recent_;  ///< kept though no job holds them
  std::map<std::string, Work> work_;
  std::map<std::string, std::function<void(OtherTurn)>> others_;  ///< that wait for their turns
  PlanningQueue queue_;
  std::map<PlanningQueue::Kind, int> under_way_;
  std::vector<Turn> refining_;  ///< turns of refinements that are under way
  bool stopping_ = false;
  bool starting_ = false;
  std::int64_t computed_ = 0;
  std::int64_t failed_ = 0;
  std::int64_t stopped_ = 0;
  double planner_s_ = 0;
};

}  // namespace perseus::service
