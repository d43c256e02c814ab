// Judges plans by this rank's own iterations, and selects the highest clock when plans harm training.
//
// An iteration's time is that from one perseus_step_begin() to the next: a plan may use slack behind this rank's last
// computation without slowing the job. It includes the wait of the all-reduce for a slower pipeline; rule 4 tells
// that from a wrong plan. Its *device time* is what its computations took, plus its idle time as far as iterations at
// the highest clock have as much: a stall of the host, here or on another rank, is in no device time. The reference
// are the last 32 iterations at the highest clock, if that clock really ran. The limit of a plan is the median of the
// reference, times the promised slowdown (iteration_time_s over maximum_clock_time_s) if the plan names its reason
// (slower_because: a straggler, a policy), plus the tolerance. No plan that saves energy promises much: at its slowest,
// computations run at their clocks of least energy.
//
//   1. No plan runs before three iterations at the highest clock were measured. The first iteration warms up and does
//      not count.
//   2. The guard refuses a plan that promises more than 1.5 times the reference without a reason, and more than
//      `most_slowdown` times with one: any server can name one.
//   3. Iterations are too slow if the median of the last five, or of the last 32, exceeds the limit by more than four
//      standard errors of both medians; or if the device time of two iterations in a row exceeds it, and what the
//      reference varies by, by 30 %. A checkpoint or a late batch moves neither.
//   4. Then a trial begins: the rank runs at its highest clock for five iterations, or for as many more (to 32) as a
//      significant result takes. If these are about as slow, the plan is not the cause (a straggler, a longer sequence,
//      a slower network): they become the reference and the plan continues; the next trial comes after twice as many
//      iterations as the last. Otherwise the plan gets a second look: if it is slow again, the guard drops it; if not,
//      it continues, since a stall has ended meanwhile.
//   5. A dropped plan is tried again after 1, 2, 4, ... 64 minutes of training. Another version is tried at once, but
//      after two slow versions in a row it waits like them. Ten minutes without a slow iteration end this.
//   6. Whatever the versions and shapes are: the device time beyond the limits that all plans have cost may be 10
//      iterations, plus 0.5 % of those trained. While it is more, no plan runs. Profiling windows have an account of
//      their own (10 iterations plus 0.1 %), and pauses of their own: neither ends the other.
//   7. Two iterations in a row of a profiling window that take more than 1.3 times the reference drop the window.
//
// Every rank of a pipeline sees the slow iterations at the same time, so their trials coincide; that makes rule 4
// sound. A rank whose own share of the plan is at the highest clock takes part. A rank that cannot set its clock does
// not: it runs no plan.
//
// Input:   plans before they take effect, iterations in order.
// Output:  whether the rank is to stay at its highest clock; each verdict once.
// Cost:    O(32 log 32) an iteration.
// Threads: one at a time.
// Source:  docs/decisions/0029-the-client-guards-training.md.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "training/client/plan_follower.h"
#include "training/client/step_recorder.h"

namespace perseus::client {

struct DroppedPlan {
  std::int64_t version = 0;
  double promised_s = 0;  ///< limit of an iteration's time, without the tolerance
  double measured_s = 0;
  std::string text;      ///< one clause with both times, for a log
  std::string reason;    ///< the part that the times do not show, for the server, which prints the times itself
  double pause_s = 0;    ///< of training, until it is tried again
  int microbatches = 0;  ///< of the steps that it was dropped for; 0: not known
  /// The plan promises more than this rank allows, which is no fault of its profile: nothing for the server.
  bool not_allowed = false;
};

struct GuardedIteration {
  std::int64_t plan_version = 0;
  bool followed = false;       ///< followed the plan from beginning to end
  bool maximum_clock = false;  ///< for every computation of this rank
  double time_s = 0;           ///< from this step's begin to the next one's
  double computed_s = 0;       ///< of it, in computations that have a clock; 0: not known
  bool other_clock = false;    ///< the device did not run at the clocks that were set
  int microbatches = 0;        ///< 0: not known
};
/// All members but the time and other_clock, which are known at the next step. `highest_mhz`: 0: not known.
GuardedIteration guarded_iteration(const Step& step, int highest_mhz);

/// Rule 6, for all shapes of a job.
struct Losses {
  struct Account {
    double iterations = 0;
    std::int64_t version = 0;  ///< that they are from; -1: several
  };
  Account plans, windows;
};

class PlanGuard {
 public:
  static constexpr double kMostSlowdown = 2;

  /// A negative tolerance disables all judgment.
  explicit PlanGuard(double tolerance, double most_slowdown = kMostSlowdown,
                     std::shared_ptr<Losses> losses = std::make_shared<Losses>())
      : tolerance_(tolerance), most_slowdown_(most_slowdown), losses_(std::move(losses)) {}

  /// Call before the plan can take effect. True: the rank must stay at its highest clock, as holds() reports.
  bool arrives(const ClockPlan& plan);
  /// Under a power budget the guard judges no plan until another one arrives(): such a plan is slower on purpose, and
  /// the highest clock, which trials need, is not available.
  void rest();
  void take(const GuardedIteration& iteration);
  /// The rank must run at its highest clock, whatever the plan requests.
  [[nodiscard]] bool holds() const;
  /// No plan is tried at present, since plans were too slow.
  [[nodiscard]] bool paused() const { return phase_ == Phase::paused; }
  /// The plan that was dropped since the last call.
  std::optional<DroppedPlan> take_dropped() { return std::exchange(dropped_, std::nullopt); }
  /// The trial (rule 4) that ended well since the last call, as one sentence for a log.
  std::optional<std::string> take_remark() { return std::exchange(remark_, std::nullopt); }

 private:
  enum class Phase { following, baseline, trial, second_look, paused };
  struct Judged {
    std::int64_t version = 0;
    ClockPlan::Kind kind = ClockPlan::Kind::maximum_clock;
    double promised_s = 0, maximum_clock_time_s = 0;
    bool slow_on_purpose = false;
    [[nodiscard]] bool is_window() const { return kind == ClockPlan::Kind::profiling_window; }
  };
  /// Of plans, and of profiling windows.
  struct Pause {
    int drops = 0;       ///< in a row
    double until_s = 0;  ///< in trained_s_
  };
  struct Sample {
    double time_s = 0, computed_s = 0;
    std::int64_t version = 0;
    [[nodiscard]] double device_time(double usual_idle_s) const;
  };
  class Samples {
   public:
    void add(const Sample& sample);
    void clear() {
      samples_.clear();
      known_.reset();
    }
    [[nodiscard]] std::size_t size() const { return samples_.size(); }
    [[nodiscard]] std::vector<double> last_times(std::size_t count) const;
    [[nodiscard]] bool one_version(std::size_t count) const;
    [[nodiscard]] double median_time() const { return known().median_s; }
    [[nodiscard]] double usual_idle() const { return known().idle_s; }
    /// Device time that hardly any iteration exceeds.
    [[nodiscard]] double longest() const { return known().longest_s; }

   private:
    struct Known {
      double median_s, idle_s, longest_s;
    };
    const Known& known() const;
    std::deque<Sample> samples_;
    mutable std::optional<Known> known_;  ///< of samples_
  };

  void begin(const Judged& plan);
  void try_plan();
  void resume();
  void at_maximum_clock(const Sample& sample);
  bool strikes_out(const Sample& sample);
  void under_the_plan(const Sample& sample);
  void look_again(const Sample& sample);
  void start_trial(std::vector<double> slow, bool one_version);
  void decide_trial();
  void plan_continues();
  void drop_as_slow();
  void drop(Pause& pause, double promised_s, double measured_s, std::string text, std::string reason);
  void add_cost(const Sample& sample);
  bool drops_for_cost(const Sample& sample);
  [[nodiscard]] Losses::Account& lost_by(const Judged& plan) const {
    return plan.is_window() ? losses_->windows : losses_->plans;
  }
  [[nodiscard]] bool waits(const Judged& plan) const;
  [[nodiscard]] bool costs_too_much(const Judged& plan) const;
  [[nodiscard]] double most_promised(const Judged& plan) const {
    return plan.slow_on_purpose ? most_slowdown_ : kMostWithoutReason;
  }
  [[nodiscard]] double device_time(const Sample& sample) const;
  /// Times slower than the highest clock that the plan may be.
  [[nodiscard]] double slowdown() const;
  /// By how much the median of `times`, as if the plan promised no slowdown, exceeds its limit.
  [[nodiscard]] double excess_s(const std::vector<double>& times, const std::vector<double>& reference) const;
  [[nodiscard]] bool too_slow(const std::vector<double>& times, const std::vector<double>& reference) const;
  [[nodiscard]] bool refuses(const Judged& plan) const;

  static constexpr double kMostWithoutReason = 1.5;
  [[nodiscard]] const Pause& pause_of(const Judged& plan) const {
    return plan.is_window() ? window_pause_ : plan_pause_;
  }
  [[nodiscard]] Pause& pause_of(const Judged& plan) { return plan.is_window() ? window_pause_ : plan_pause_; }

  const double tolerance_, most_slowdown_;
  const std::shared_ptr<Losses> losses_;
  Phase phase_ = Phase::following;
  Judged plan_;
  std::deque<Judged> coming_;  ///< have arrived, but no iteration has run them yet
  bool resting_ = false;
  Samples reference_, trial_;
  Samples under_plan_, second_look_;  ///< times as if the plan promised no slowdown
  std::vector<double> slow_;          ///< times that started the trial
  bool slow_version_ = true;          ///< ... are of one version, which can be looked at again
  bool warmed_up_ = false;
  bool settles_ = false, settled_ = false;  ///< the clock changes in the next iteration; it did in the last one
  int strikes_ = 0;
  std::int64_t followed_ = 0, trial_after_ = 0, trial_pause_ = 0;
  double trained_s_ = 0;  ///< sum of all iterations
  double slow_at_s_ = 0;  ///< in trained_s_
  Pause plan_pause_, window_pause_;
  std::optional<std::string> remark_;
  std::optional<DroppedPlan> dropped_;
};

}  // namespace perseus::client
