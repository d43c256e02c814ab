// Which clock the computation that comes now is to run at: a plan, followed in the order in which the rank computes.
//
// Problem: plans come from another thread at any time, hold from some iteration on, and may not fit what the job runs.
// Input: plans through the mailbox; then the training thread's steps and computations. Output: a clock per computation
// (MHz; 0: leave it as it is). A plan lists the rank's clock-controlled computations in execution order; the n-th that
// begins in a step runs at the n-th clock if the names agree. Load, all-reduce and optimizer step have no clock and are
// in no plan. Where names or counts differ, or the plan is held back (hold_maximum), the clock is the highest one; a
// whole step that fits lets the plan rule again. Before the first plan the clock is left alone. Errors: none; misfit()
// says what did not fit, for another thread to tell. Cost: an array access; one atomic exchange a step. Threads: put()
// and the getters any; the rest the training thread. Source: paper section 5 (controller.set_speed).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/instruction.h"

namespace perseus::client {

struct PlannedClock {
  Instruction instruction = Instruction::forward;
  int clock_mhz = 0;
};

struct Plan {
  enum class Kind { plan, profiling_window, maximum_clock };
  Kind kind = Kind::maximum_clock;
  std::int64_t version = 0;
  std::int64_t from_iteration = 0;
  int window = -1;
  int iterations = 0;  ///< of a profiling window
  double iteration_time_s = 0;
  double maximum_clock_time_s = 0;  ///< the same everywhere at the highest clock; 0: not known
  std::string reason;
  std::string slower_because;  ///< why it is slower than it need be: a straggler, a policy; empty: it is not
  std::vector<PlannedClock> clocks;
  Plan* next_retired = nullptr;
};

class PlanFollower {
 public:
  PlanFollower() = default;
  PlanFollower(const PlanFollower&) = delete;
  PlanFollower& operator=(const PlanFollower&) = delete;
  ~PlanFollower();

  // Any thread.
  /// The next plan; one that was put before and not taken yet is forgotten. Frees plans that have been replaced.
  void put(std::unique_ptr<Plan> plan);
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
  /// The clock of the next computation, of that instruction.
  [[nodiscard]] int clock_for(Instruction instruction);
  /// It has begun.
  void begun(Instruction instruction);
  /// clock_for() was called for the computation that comes.
  [[nodiscard]] bool asked() const { return asked_; }
  /// The clock of the one after, whatever it is; 0 if none is known.
  [[nodiscard]] int next_clock() const;
  void end_step();
  /// After end_step(): the clock that the step of that number begins with, as far as is known; 0: leave it.
  [[nodiscard]] int first_clock_of(std::int64_t iteration) const;
  /// What is run outside of training steps (evaluation): the highest clock if a plan rules, else 0.
  [[nodiscard]] int clock_outside() const { return plan_ == nullptr ? 0 : maximum_.load(std::memory_order_relaxed); }
  [[nodiscard]] const Plan* plan() const { return plan_.get(); }
  /// After end_step(): the step ran by the plan from beginning to end, as far as the training thread knows.
  [[nodiscard]] bool followed() const { return ruling() && fits_so_far_ && !fitted_late_; }

 private:
  [[nodiscard]] bool planned(Instruction instruction) const {
    return position_ < num_clocks_ && clocks_[position_].instruction == instruction;
  }
  [[nodiscard]] bool ruling() const { return plan_ != nullptr && fits_ && !held_.load(std::memory_order_relaxed); }
  [[nodiscard]] int fallback() const {
    return plan_ == nullptr && !held_.load(std::memory_order_relaxed) ? 0 : maximum_.load(std::memory_order_relaxed);
  }
  [[gnu::cold]] void misfits(int instruction);
  void retire(std::unique_ptr<Plan> plan);

  // What is looked at per computation, in one line of the cache.
  alignas(64) std::unique_ptr<Plan> plan_;  ///< in force
  const PlannedClock* clocks_ = nullptr;    ///< of plan_
  std::size_t num_clocks_ = 0;
  std::size_t position_ = 0;
  bool asked_ = false;      ///< clock_for() was called since the last begun()
  bool begun_any_ = false;  ///< in this step
  bool fits_ = true;        ///< the last whole step under plan_, and this one so far
  bool fits_so_far_ = true;
  bool fitted_late_ = false;  ///< this step fits, and ran at the highest clock because the one before did not
  std::atomic<bool> held_{false};
  std::atomic<int> maximum_{0};

  std::unique_ptr<Plan> next_;  ///< taken from the mailbox, holds from a later iteration
  std::atomic<Plan*> mailbox_{nullptr};
  std::atomic<Plan*> retired_{nullptr};
  std::atomic<std::int64_t> misfit_{0}, version_{0};
  std::atomic<int> misfit_position_{0}, misfit_instruction_{-1};
};

// Here, so that all of a hot call is in one piece: each line of code is fetched anew after a computation.

inline int PlanFollower::clock_for(Instruction instruction) {
  if (is_constant_time(instruction)) return 0;
  // A loop that sets speeds without begin() and end() around its computations.
  if (asked_ && !begun_any_) ++position_;
  asked_ = true;
  if (plan_ == nullptr) return fallback();
  if (!planned(instruction)) {
    if (num_clocks_ != 0) misfits(static_cast<int>(instruction));
    return fallback();
  }
  return ruling() ? clocks_[position_].clock_mhz : fallback();
}

inline void PlanFollower::begun(Instruction instruction) {
  if (is_constant_time(instruction)) return;
  if (num_clocks_ != 0 && !planned(instruction)) misfits(static_cast<int>(instruction));
  ++position_;
  asked_ = false;
  begun_any_ = true;
}

inline int PlanFollower::next_clock() const {
  return ruling() && position_ < num_clocks_ ? clocks_[position_].clock_mhz : 0;
}

}  // namespace perseus::client
