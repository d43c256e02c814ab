// Follows a plan: the clock of each computation, by what it is (instruction, microbatch, chunk).
//
// Input:   plans from another thread at any time, each valid from some iteration on; then the training thread's steps
// and
//          computations, in whatever order the framework runs them.
// Output:  a clock per computation (MHz; 0: leave it as it is). Callers that do not know microbatch or chunk (-1) are
//          matched by the order of instructions alone. Load, all-reduce and optimizer step have no clock and are in no
//          plan. A step without any computation runs as one captured graph: it gets one clock, the highest of the plan.
// Errors:  a computation that the plan does not have, has only once, or misses at the end of a step is a misfit: the
//          clock is the highest one until a whole step fits. misfit_*() say what did not fit, for another thread to
//          log. The same where the plan is held back (hold_maximum). Before the first plan the clock is left alone.
// Cost:    an array access per computation in the plan's order, a search in any other; one atomic exchange per step.
// Threads: put() and the getters any; the rest the training thread.
// Source:  paper section 5 (controller.set_speed).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planning/model/instruction.h"

namespace perseus::client {

struct PlannedClock {
  model::Instruction instruction = model::Instruction::forward;
  int clock_mhz = 0;
  int microbatch = -1, chunk = -1;  ///< -1: not known
};

struct ClockPlan {
  enum class Kind { plan, profiling_window, maximum_clock };
  Kind kind = Kind::maximum_clock;
  std::int64_t version = 0;
  std::int64_t from_iteration = 0;
  int window = -1;
  int iterations = 0;         ///< of a profiling window
  bool then_maximum = false;  ///< after so many iterations: the highest clock, until another plan comes
  double iteration_time_s = 0;
  double maximum_clock_time_s = 0;  ///< the same everywhere at the highest clock; 0: not known
  std::string reason;
  std::string slower_because;  ///< why it is slower than it need be: a straggler, a policy; empty: it is not
  std::vector<PlannedClock> clocks;
  std::vector<bool> ran;  ///< the follower's: in this step, per clock, once computations run in another order
  ClockPlan* next_retired = nullptr;
};

class PlanFollower {
 public:
  PlanFollower() = default;
  PlanFollower(const PlanFollower&) = delete;
  PlanFollower& operator=(const PlanFollower&) = delete;
  ~PlanFollower();

  // Any thread.
  /// The next plan; one that was put before and not taken yet is forgotten. Frees plans that have been replaced.
  void put(std::unique_ptr<ClockPlan> plan);
  /// The highest clock, 0: not known (then it is left alone).
  void set_maximum(int clock_mhz) { maximum_.store(clock_mhz, std::memory_order_relaxed); }
  /// Something is wrong: the highest clock instead of the plan's, until it is lifted again.
  void hold_maximum(bool hold) { held_.store(hold, std::memory_order_relaxed); }
  /// Number of the plan version that does not fit; 0: none, or it fits by now.
  [[nodiscard]] std::int64_t misfit_version() const { return misfit_.load(std::memory_order_acquire); }
  /// Where: position in the plan, what ran there (-1: the step ended there).
  [[nodiscard]] int misfit_position() const { return misfit_position_.load(std::memory_order_relaxed); }
  [[nodiscard]] int misfit_instruction() const { return misfit_instruction_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t version_in_force() const { return version_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool held() const { return held_.load(std::memory_order_relaxed); }

  // The training thread.
  void begin_step(std::int64_t iteration);
  /// The clock of the next computation, which is that one. -1: not known.
  [[nodiscard]] int clock_for(model::Instruction instruction, int microbatch = -1, int chunk = -1);
  /// It has begun.
  void begun(model::Instruction instruction, int microbatch = -1, int chunk = -1);
  /// clock_for() was called for the computation that comes.
  [[nodiscard]] bool asked() const { return asked_; }
  /// The clock of the one after, whatever it is; 0 if none is known.
  [[nodiscard]] int next_clock() const;
  void end_step();
  /// After end_step(): the clock that the step of that number begins with, as far as is known; 0: leave it.
  [[nodiscard]] int first_clock_of(std::int64_t iteration) const;
  /// What is run outside of training steps (evaluation): the highest clock if a plan rules, else 0.
  [[nodiscard]] int clock_outside() const { return plan_ == nullptr ? 0 : maximum_.load(std::memory_order_relaxed); }
  [[nodiscard]] const ClockPlan* plan() const { return plan_.get(); }
  /// After end_step(): the step ran by the plan from beginning to end, as far as the training thread knows.
  [[nodiscard]] bool followed() const { return ruling() && fits_so_far_ && !fitted_late_ && !whole_step(); }
  /// The profiling window in force has had its iterations: this step runs at the highest clock.
  [[nodiscard]] bool over() const { return expired_; }
  /// Steps run without any computation in sight (a captured graph): they get one clock. Any thread.
  [[nodiscard]] bool whole_step() const { return whole_step_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  static bool is(const PlannedClock& planned, model::Instruction instruction, int microbatch, int chunk) {
    return planned.instruction == instruction &&
           (microbatch < 0 || planned.microbatch < 0 || planned.microbatch == microbatch) &&
           (chunk < 0 || planned.chunk < 0 || planned.chunk == chunk);
  }
  /// Where in the plan that computation is, if it has not run in this step.
  [[nodiscard]] std::size_t find(model::Instruction instruction, int microbatch, int chunk) const {
    if (position_ < num_clocks_ && is(clocks_[position_], instruction, microbatch, chunk)) return position_;
    return microbatch < 0 ? kNowhere : find_elsewhere(instruction, microbatch, chunk);
  }
  [[nodiscard]] [[gnu::cold]] std::size_t find_elsewhere(model::Instruction instruction, int microbatch,
                                                         int chunk) const;
  /// That one runs now: `position_` is the first that has not run.
  void take(std::size_t at) {
    if (at == position_ && !reordered_) {
      ++position_;
    } else if (at != kNowhere) {
      take_elsewhere(at);
    }
  }
  [[gnu::cold]] void take_elsewhere(std::size_t at);
  [[nodiscard]] int highest_planned() const;
  [[nodiscard]] bool ruling() const {
    return plan_ != nullptr && fits_ && !expired_ && !held_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] int fallback() const {
    return plan_ == nullptr && !held_.load(std::memory_order_relaxed) ? 0 : maximum_.load(std::memory_order_relaxed);
  }
  [[gnu::cold]] void misfits(int instruction);
  void retire(std::unique_ptr<ClockPlan> plan);

  // What is looked at per computation, in one line of the cache.
  alignas(64) std::unique_ptr<ClockPlan> plan_;  ///< in force
  const PlannedClock* clocks_ = nullptr;         ///< of plan_
  std::size_t num_clocks_ = 0;
  std::size_t position_ = 0;
  std::size_t asked_at_ = 0;
  bool asked_ = false;      ///< clock_for() was called since the last begun()
  bool reordered_ = false;  ///< in this step computations run in another order than the plan's: see Plan::ran
  bool begun_any_ = false;  ///< in this step
  bool expired_ = false;    ///< as many steps as a window has have run under plan_
  bool fits_ = true;        ///< the last whole step under plan_, and this one so far
  bool fits_so_far_ = true;
  bool fitted_late_ = false;  ///< this step fits, and ran at the highest clock because the one before did not
  std::atomic<bool> held_{false};
  std::atomic<int> maximum_{0};

  std::atomic<bool> whole_step_{false};
  int steps_ = 0;                    ///< under plan_
  std::unique_ptr<ClockPlan> next_;  ///< taken from the mailbox, holds from a later iteration
  std::atomic<ClockPlan*> mailbox_{nullptr};
  std::atomic<ClockPlan*> retired_{nullptr};
  std::atomic<std::int64_t> misfit_{0}, version_{0};
  std::atomic<int> misfit_position_{0}, misfit_instruction_{-1};
};

// Here, so that all of a hot call is in one piece: each line of code is fetched anew after a computation.

inline int PlanFollower::clock_for(model::Instruction instruction, int microbatch, int chunk) {
  if (model::is_constant_time(instruction)) return 0;
  // A loop that sets speeds without begin() and end() around its computations.
  if (asked_ && !begun_any_) take(asked_at_);
  asked_ = true;
  if (plan_ == nullptr) return fallback();
  asked_at_ = find(instruction, microbatch, chunk);
  if (asked_at_ == kNowhere) {
    if (num_clocks_ != 0) misfits(static_cast<int>(instruction));
    return fallback();
  }
  return ruling() ? clocks_[asked_at_].clock_mhz : fallback();
}

inline void PlanFollower::begun(model::Instruction instruction, int microbatch, int chunk) {
  if (model::is_constant_time(instruction)) return;
  asked_ = false;
  begun_any_ = true;
  if (num_clocks_ == 0) return;
  const std::size_t at = find(instruction, microbatch, chunk);
  if (at == kNowhere) misfits(static_cast<int>(instruction));
  take(at);
}

inline int PlanFollower::next_clock() const {
  if (!ruling()) return 0;
  if (whole_step() && position_ == 0) return highest_planned();
  return position_ < num_clocks_ ? clocks_[position_].clock_mhz : 0;
}

}  // namespace perseus::client
