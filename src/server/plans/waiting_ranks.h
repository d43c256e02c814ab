// Ranks that wait for the next plan, and their answers.
//
// Problem: tens of thousands of ranks wait at a time; a new plan answers all ranks of a job, a restarted process ends
//          its predecessor's wait.
// Input:   wait(); answer() when what the ranks of a job see may have changed.
// Output:  each wait's `done` once: the plan (server/plans/rank_plans.h), nothing at the time limit, or an error.
// Errors:  those of JobAccess; conflict: the job is over, or a later process holds the rank; unavailable: the server
//          is stopping.
// Cost:    O(1) per wait; answer() O(waiting ranks of the job).
// Threads: io thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "server/live/job_access.h"
#include "server/plans/held_plans.h"
#include "server/plans/planning_options.h"
#include "server/plans/rank_plans.h"

namespace perseus::plans {

class WaitingRanks {
 public:
  WaitingRanks(const PlanningOptions& options, live::JobCache& jobs, const Clock& clock, work::Due& due,
               live::JobAccess& access, RankPlans& plans, HeldPlans& held)
      : options_(options),
        jobs_(jobs),
        clock_(clock),
        alarm_(due, work::Due::Turn::waits, *this),
        access_(access),
        plans_(plans),
        held_(held) {}

  /// Answers when there is a plan of another version. The id cancels the call; it is 0 if the answer has already been
  /// given.
  jobs::WaitId wait(jobs::WaitForPlan request, work::Done<jobs::PlanAnswer> done);
  /// False: "unchanged" would renew no lease, since the rank's plan has no budget.
  bool cancel(jobs::WaitId wait);
  /// The same, and the rank's host has closed its connection: see server/live/rank_calls.h.
  void closed(jobs::WaitId wait);
  /// The process has ended, unless it calls again.
  /// No effect if this server does not know the rank, or another process holds it.
  void ended(const std::string& job, int rank, std::int64_t epoch);
  [[nodiscard]] std::size_t size() const { return job_of_.size(); }

  /// Answers the job's waiting ranks that need not wait any longer.
  void answer(live::LiveJob& live);
  /// Ends waits of processes that no longer hold their rank.
  void end_earlier(live::LiveJob& live, int rank);
  /// Answers all waits for the job's plans: the job was removed.
  void job_removed(live::LiveJob& live);
  /// Answers every wait, and every later one, with `unavailable`.
  void stop();

 private:
  [[nodiscard]] bool may_answer(const live::LiveJob& live) const;
  jobs::WaitId begin(live::LiveJob& live, const jobs::WaitForPlan& request, jobs::WaitId id,
                     work::Done<jobs::PlanAnswer> done);
  void park(live::LiveJob& live, jobs::WaitId id, live::Waiter waiter);
  std::optional<live::Waiter> take(jobs::WaitId id);
  void forget(jobs::WaitId id, const live::Waiter& waiter);
  void end(jobs::WaitId id);
  /// Ends the waits that have reached their time limit.
  void end_late(double now_s);
  void set_alarm();
  void end_at_highest_clock(live::LiveJob& live, jobs::WaitId id, live::Waiter waiter);

  const PlanningOptions& options_;
  live::JobCache& jobs_;
  const Clock& clock_;
  work::AlarmOf<&WaitingRanks::end_late> alarm_;
  live::JobAccess& access_;
  RankPlans& plans_;
  HeldPlans& held_;
  std::unordered_map<jobs::WaitId, live::LiveJob*> job_of_;  ///< a job that waits is not forgotten, see job_removed()
  std::unordered_map<jobs::WaitId, work::Done<jobs::PlanAnswer>> to_begin_;  ///< their job is being read
  std::set<std::pair<double, jobs::WaitId>> deadlines_;
  jobs::WaitId next_ = 1;
  bool stopping_ = false;
};

}  // namespace perseus::plans
