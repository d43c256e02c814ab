// Judges plans by this rank's own iterations, and selects the highest clock when a plan harms training.
//
// An iteration's time is that from one perseus_step_begin() to the next: a plan may use slack behind this rank's last
// computation without slowing the job. It includes the wait of the all-reduce for a slower pipeline; rule 4 tells
// that from a wrong plan. The reference is the median of the last 32 iterations at the highest clock. The limit of a
// plan is the reference times its promised slowdown (iteration_time_s over maximum_clock_time_s, at least 1), plus
// the tolerance. Where the server does not send maximum_clock_time_s, the limit is the reference or iteration_time_s,
// whichever is longer, plus the tolerance.
//
//   1. No plan runs before three iterations at the highest clock were measured. The first iteration warms up and does
//      not count.
//   2. The guard refuses a plan that promises more than 1.5 times the reference, unless the plan names its reason
//      (slower_because: a straggler, a policy).
//   3. Iterations are too slow if the median of the last five, or of the last 32, exceeds the limit by more than four
//      standard errors of both medians; or if two iterations in a row exceed it by 30 %. A checkpoint or a late batch
//      moves no median.
//   4. Then a trial begins: the rank runs at its highest clock for five iterations, or for as many more (to 32) as a
//      significant result takes. If these are about as slow, the plan is not the cause (a straggler, a longer sequence,
//      a slower network): they become the reference and the plan continues; the next trial comes after twice as many
//      iterations as the last. Otherwise the guard drops the plan until another version arrives.
//   5. Two iterations in a row of a profiling window that take more than 1.3 times the reference drop the window.
//
// Every rank of a pipeline sees the slow iterations at the same time, so their trials coincide; that makes rule 4
// sound. A rank whose own share of the plan is at the highest clock takes part. A rank that cannot set its clock does
// not: it runs no plan.
//
// Input:   plans before they take effect, iterations in order.
// Output:  whether the rank is to stay at its highest clock; the dropped plan, once.
// Errors:  none. A plan without a promise has a limit of 1.5 times the reference.
// Cost:    O(32 log 32) an iteration.
// Threads: any.
// Source:  docs/decisions/0029-the-client-guards-training.md.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "training/client/plan_follower.h"
#include "training/client/step_recorder.h"

namespace perseus::client {

struct DroppedPlan {
  std::int64_t version = 0;
  double promised_s = 0;  ///< limit of an iteration's time, without the tolerance
  double measured_s = 0;
  std::string text;    ///< one clause with both times, for a log
  std::string reason;  ///< the part that the times do not show, for the server, which prints the times itself
};

struct GuardedIteration {
  std::int64_t plan_version = 0;
  bool followed = false;       ///< followed the plan from beginning to end
  bool maximum_clock = false;  ///< for every computation of this rank
  double time_s = 0;           ///< from this step's begin to the next one's
};
/// All members but the time, which is known at the next step. `highest_mhz`: 0: not known.
GuardedIteration guarded_iteration(const Step& step, int highest_mhz);

class PlanGuard {
 public:
  /// A negative tolerance disables all judgment.
  explicit PlanGuard(double tolerance) : tolerance_(tolerance) {}

  /// Call before the plan can take effect. True: the rank must stay at its highest clock, as holds() reports.
  bool arrives(const ClockPlan& plan);
  /// Under a power budget the guard judges no plan until another one arrives(): such a plan is slower on purpose, and
  /// the highest clock, which trials need, is not available.
  void rest();
  void take(const GuardedIteration& iteration);
  /// The rank must run at its highest clock, whatever the plan requests.
  [[nodiscard]] bool holds() const;
  /// The plan that was dropped since the last call.
  std::optional<DroppedPlan> take_dropped();
  /// The trial (rule 4) that began or ended since the last call, as one sentence for a log.
  std::optional<std::string> take_remark();

 private:
  enum class Phase { idle, baseline, following, trial, dropped };
  struct Judged {
    std::int64_t version = 0;
    ClockPlan::Kind kind = ClockPlan::Kind::maximum_clock;
    double promised_s = 0, maximum_clock_time_s = 0;
    bool slow_on_purpose = false;
  };
  class Times {
   public:
    void add(double time_s);
    void clear() { times_.clear(); }
    [[nodiscard]] std::size_t size() const { return times_.size(); }
    [[nodiscard]] std::vector<double> last(std::size_t count) const;

   private:
    std::deque<double> times_;
  };

  void begin(const Judged& plan);
  void admit();
  void at_maximum_clock(double time_s);
  bool strikes_out(double time_s);
  void under_the_plan(double time_s);
  void decide_trial();
  void start_trial(const std::vector<double>& slow);
  void drop(double promised_s, double measured_s, std::string text, std::string reason);
  /// The limit of an iteration's time for a reference of `reference_s` at the highest clock, without the tolerance.
  [[nodiscard]] double allowed_s(double reference_s) const;
  /// By how much the median of `times` exceeds its limit.
  [[nodiscard]] double excess_s(const std::vector<double>& times, const std::vector<double>& reference) const;
  [[nodiscard]] bool too_slow(const std::vector<double>& times, const std::vector<double>& reference) const;
  [[nodiscard]] bool refuses(const Judged& plan) const;

  const double tolerance_;
  mutable std::mutex mutex_;
  Phase phase_ = Phase::idle;
  Judged plan_;
  std::optional<Judged> next_;  ///< has arrived, but no iteration has run it yet
  bool next_holds_ = false;
  Times reference_, under_plan_, trial_;
  std::vector<double> slow_;  ///< times that started the trial
  bool warmed_up_ = false;
  bool settles_ = false;  ///< the clock changes in the next iteration
  int strikes_ = 0;
  std::int64_t followed_ = 0, trial_after_ = 0, trial_pause_ = 0;
  std::optional<std::string> remark_;
  std::optional<DroppedPlan> dropped_;
};

}  // namespace perseus::client
