// Ranks that wait for the next plan, and their answers.
//
// Problem: tens of thousands of ranks wait at a time; a new plan answers all ranks of a job, a restarted process ends
//          its predecessor's wait.
// Input:   wait(); answer() when what the ranks of a job see may have changed.
// Output:  each wait's `done` once: the plan (server/service/rank_plans.h), nothing at the time limit, or an error.
// Errors:  those of JobAccess; conflict: the job is over, or a later process holds the rank; unavailable: the server
//          is stopping.
// Cost:    O(1) per wait; answer() O(waiting ranks of the job).
// Threads: io thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "server/service/job_access.h"
#include "server/service/rank_plans.h"
#include "server/service/service_options.h"

namespace perseus::service {

class WaitingRanks {
 public:
  WaitingRanks(const ServiceOptions& options, JobCache& jobs, const Clock& clock, JobAccess& access, RankPlans& plans)
      : options_(options), jobs_(jobs), clock_(clock), access_(access), plans_(plans) {}

  /// See Service::wait_for_plan().
  jobs::WaitId wait(jobs::WaitForPlan request, Done<jobs::PlanAnswer> done);
  /// False: "unchanged" would renew no lease, since the rank's plan has no budget.
  bool cancel(jobs::WaitId wait);
  /// The same, and the rank's host has closed its connection.
  void closed(jobs::WaitId wait);
  /// The process has ended, unless it calls again.
  void ended(LiveJob& live, int rank, std::int64_t epoch);
  [[nodiscard]] std::size_t size() const { return job_of_.size(); }

  /// Answers the job's waiting ranks that need not wait any longer.
  void answer(LiveJob& live);
  /// Ends waits of processes that no longer hold their rank.
  void end_earlier(LiveJob& live, int rank);
  /// Answers all waits for the job's plans: the job was removed.
  void job_removed(LiveJob& live);
  /// Answers every wait, and every later one, with `unavailable`.
  void stop();

  /// Ends the waits that have reached their time limit.
  void tick(double now_s);
  [[nodiscard]] std::optional<double> next_wake() const;
  /// Called with each version that a rank says it has. May be empty.
  std::function<void(LiveJob&, int rank, std::int64_t version)> has_version;
  /// Called when next_wake() has become earlier.
  std::function<void()> earlier_wake;

 private:
  [[nodiscard]] bool may_answer(const LiveJob& live) const;
  jobs::WaitId begin(LiveJob& live, const jobs::WaitForPlan& request, jobs::WaitId id, Done<jobs::PlanAnswer> done);
  void park(LiveJob& live, jobs::WaitId id, Waiter waiter);
  std::optional<Waiter> take(jobs::WaitId id);
  void forget(jobs::WaitId id, const Waiter& waiter);
  void end(jobs::WaitId id);
  void end_at_highest_clock(LiveJob& live, jobs::WaitId id, Waiter waiter);

  const ServiceOptions& options_;
  JobCache& jobs_;
  const Clock& clock_;
  JobAccess& access_;
  RankPlans& plans_;
  std::unordered_map<jobs::WaitId, LiveJob*> job_of_;  ///< a job that waits is not forgotten, see job_removed()
  std::unordered_map<jobs::WaitId, Done<jobs::PlanAnswer>> to_begin_;  ///< their job is being read
  std::set<std::pair<double, jobs::WaitId>> deadlines_;
  jobs::WaitId next_ = 1;
  bool stopping_ = false;
};

}  // namespace perseus::service
