// Follows a plan: returns the clock of each computation, identified by instruction, microbatch and chunk.
//
// Input:   plans from another thread at any time, each valid from some iteration on; then the training thread's steps
//          and computations, in any order of the framework.
// Output:  a clock per computation (MHz; 0: leave it unchanged). A plan has clocks for steps of several shapes (numbers
//          of microbatches); a step follows those of its shape, as the program gives it at the step's begin, else of
//          the step before. A step of any other shape runs at the highest clock, and is no misfit. Callers that do not
//          know microbatch or chunk (-1) are matched by the order of instructions alone. Load, all-reduce and optimizer
//          step have no clock and are in no plan. A step without any computation runs as one captured graph: it gets
//          one clock, the highest of the plan; under a power budget at most the ceiling.
// Errors:  a computation that the plan does not have, has only once, or misses at the end of a step is a misfit: the
//          clock is the highest one until a whole step fits. misfit_*() return the mismatch, for another thread to
//          log. The same holds while hold_maximum is set. Before the first plan the clock is left unchanged. Under a
//          power budget the highest clock is the ceiling in all of these cases.
// Cost:    an array access per computation in the plan's order, a search in any other; one atomic exchange per step.
// Threads: put() and the getters any; the rest the training thread.
// Source:  paper section 5 (controller.set_speed).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planning/model/instruction.h"

namespace perseus::client {

struct PlannedClock {
  model::Instruction instruction = model::Instruction::forward;
  int clock_mhz = 0;
  int microbatch = -1, chunk = -1;  ///< -1: not known
};

/// A lower ceiling from a time on.
struct LaterCeiling {
  double at_s = 0;  ///< since 1970
  int ceiling_mhz = 0;
  double paced_iteration_s = 0;  ///< as in PlanBudget, from then on
};
/// Power budget that comes with a plan.
struct PlanBudget {
  double lease_s = 0;                    ///< the plan is valid this long after the server's last answer
  int ceiling_mhz = 0;                   ///< the highest clock without a valid plan
  bool at_once = false;                  ///< the plan holds from the next computation on, not from the next step on
  std::vector<LaterCeiling> ahead = {};  ///< falls of the site's limits that are known already, in order of time
  double paced_iteration_s = 0;          ///< the job is paced: each iteration takes this long at least; 0: it is not
};

/// The clocks of steps with another number of microbatches than the plan's first.
struct ShapeClocks {
  int microbatches = 0;
  double iteration_time_s = 0;
  double maximum_clock_time_s = 0;  ///< as ClockPlan's
  std::vector<PlannedClock> clocks;
  bool fits = true;  ///< used by the follower
};

struct ClockPlan {
  enum class Kind { plan, profiling_window, maximum_clock };
  Kind kind = Kind::maximum_clock;
  std::int64_t version = 0;
  std::int64_t from_iteration = 0;
  int window = -1;
  int iterations = 0;         ///< of a profiling window
  bool then_maximum = false;  ///< after so many iterations: the highest clock, until another plan arrives
  double iteration_time_s = 0;
  double maximum_clock_time_s = 0;   ///< the same with the highest clock on all ranks; 0: not known
  std::optional<double> saving_pct;  ///< of the job's energy at the highest clock, planned
  std::optional<double> saving_stddev_pct = {};
  bool only_possible = false;  ///< a rank sets no clocks: saving_pct is what would be saved if all did
  bool modeled = false;        ///< saving_pct is of a model of clocks that were not measured
  bool keeps_clocks = false;   ///< a profiling window that runs at the clocks that the GPU has
  std::string reason;
  std::string slower_because;  ///< why it is slower than necessary: a straggler, a policy; empty: it is not
  std::optional<PlanBudget> budget;
  int microbatches = 0;  ///< of the steps that `clocks` are for; 0: not known, so of every step
  std::vector<PlannedClock> clocks;
  std::vector<ShapeClocks> others;  ///< for steps with other numbers of microbatches
  bool fits = true;                 ///< used by the follower, as the next two
  std::vector<bool> ran;            ///< in this step, per clock, once computations run in another order
  ClockPlan* next_retired = nullptr;
};

class PlanFollower {
 public:
  PlanFollower() = default;
  PlanFollower(const PlanFollower&) = delete;
  PlanFollower& operator=(const PlanFollower&) = delete;
  ~PlanFollower();

  // Any thread.
  /// Stores the next plan and discards a stored one that was not taken yet. Frees replaced plans.
  void put(std::unique_ptr<ClockPlan> plan);
  /// The highest clock; 0: not known (then the clock is left unchanged).
  void set_maximum(int clock_mhz) { maximum_.store(clock_mhz, std::memory_order_relaxed); }
  /// Under a power budget: takes the place of the highest clock, and of a clock left unchanged; 0: no budget.
  void set_ceiling(int clock_mhz) { ceiling_.store(clock_mhz, std::memory_order_relaxed); }
  [[nodiscard]] bool limited() const { return ceiling_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] int maximum() const {
    const int ceiling = ceiling_.load(std::memory_order_relaxed);
    return ceiling != 0 ? ceiling : maximum_.load(std::memory_order_relaxed);
  }
  /// While true, the highest clock applies instead of the plan's.
  void hold_maximum(bool hold) { held_.store(hold, std::memory_order_relaxed); }
  /// The highest clock applies to steps of all other shapes (numbers of microbatches; 0: not known), from the next step
  /// on. At most kMostShapes; nothing: to none.
  void allow_shapes(const std::optional<std::vector<int>>& shapes);
  static constexpr std::size_t kMostShapes = 16;
  /// Version of the plan that does not fit; 0: none, or it fits again.
  [[nodiscard]] std::int64_t misfit_version() const { return misfit_.load(std::memory_order_acquire); }
  /// Where: position in the plan, and the instruction that ran there (-1: the step ended there).
  [[nodiscard]] int misfit_position() const { return misfit_position_.load(std::memory_order_relaxed); }
  [[nodiscard]] int misfit_instruction() const { return misfit_instruction_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t version_in_force() const { return version_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool held() const {
    return held_.load(std::memory_order_relaxed) || shape_held_.load(std::memory_order_relaxed);
  }

  // The training thread.
  /// `microbatches`: of this step, as the program gives it; 0: not known.
  void begin_step(std::int64_t iteration, int microbatches = 0);
  /// The clock of the next computation, which is the given one. -1: not known.
  [[nodiscard]] int clock_for(model::Instruction instruction, int microbatch = -1, int chunk = -1);
  /// That computation has begun.
  void begun(model::Instruction instruction, int microbatch = -1, int chunk = -1);
  /// clock_for() was called for the next computation.
  [[nodiscard]] bool asked() const { return asked_; }
  /// The clock of the computation after it, whichever it is; 0: not known.
  [[nodiscard]] int next_clock() const;
  /// Within a step: puts a stored plan in force that holds at once; false: there is none. The step then follows no plan
  /// from beginning to end. `for_each_begun` calls its argument with instruction, microbatch and chunk of each
  /// computation begun in this step. `asked_began`: so has the one that clock_for() was last called for, in a loop that
  /// calls no begun().
  template <class ForEachBegun>
  bool take_at_once(bool asked_began, const ForEachBegun& for_each_begun);
  /// The clock of that computation, whether it has run or not; `place`: its position in the step.
  [[nodiscard]] int clock_of(model::Instruction instruction, int microbatch, int chunk, std::size_t place) const;
  /// `microbatches`: as many ran; 0: not known.
  void end_step(int microbatches = 0);
  /// In place of end_step(): nothing ran in this step.
  void forget_step();
  /// After end_step(): the clock with which the step of that number begins, as far as known; 0: leave it unchanged.
  [[nodiscard]] int first_clock_of(std::int64_t iteration) const;
  /// For work outside of training steps (evaluation): the highest clock if a plan is in force, else 0.
  [[nodiscard]] int clock_outside() const { return plan_ == nullptr && !limited() ? 0 : maximum(); }
  [[nodiscard]] const ClockPlan* plan() const { return plan_.get(); }
  /// The plan in force has no clocks for this step, which has another shape; known at its end at the latest.
  [[nodiscard]] bool foreign() const { return foreign_; }
  /// Planned time of a step of this shape; 0: not known.
  [[nodiscard]] double planned_time_s() const {
    if (plan_ == nullptr || foreign_) return 0;
    return other_ == nullptr ? plan_->iteration_time_s : other_->iteration_time_s;
  }
  /// After end_step(): the step followed the plan from beginning to end, as far as the training thread knows.
  [[nodiscard]] bool followed() const { return ruling() && !foreign_ && !fitted_late_ && !whole_step(); }
  /// The profiling window in force has completed its iterations: this step runs at the highest clock.
  [[nodiscard]] bool over() const { return expired_; }
  /// Steps contain no visible computation (a captured graph) and get one clock. Any thread.
  [[nodiscard]] bool whole_step() const { return whole_step_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  static bool is(const PlannedClock& planned, model::Instruction instruction, int microbatch, int chunk) {
    return planned.instruction == instruction &&
           (microbatch < 0 || planned.microbatch < 0 || planned.microbatch == microbatch) &&
           (chunk < 0 || planned.chunk < 0 || planned.chunk == chunk);
  }
  /// Position of that computation in the plan, if it has not run in this step.
  [[nodiscard]] std::size_t find(model::Instruction instruction, int microbatch, int chunk) const {
    if (position_ < num_clocks_ && is(clocks_[position_], instruction, microbatch, chunk)) return position_;
    return microbatch < 0 ? kNowhere : find_elsewhere(instruction, microbatch, chunk);
  }
  [[nodiscard]] [[gnu::cold]] std::size_t find_elsewhere(model::Instruction instruction, int microbatch,
                                                         int chunk) const;
  /// The computation at that position runs now: `position_` is the first that has not run.
  void take(std::size_t at) {
    if (at == position_ && !reordered_) {
      ++position_;
    } else if (at != kNowhere) {
      take_elsewhere(at);
    }
  }
  [[gnu::cold]] void take_elsewhere(std::size_t at);
  /// The highest clock of the plan. Under a power budget at most the ceiling: the plan's mean is within the budget, its
  /// highest clock for all of a step may not be.
  [[nodiscard]] int whole_step_clock() const;
  [[nodiscard]] bool ruling() const { return plan_ != nullptr && fits_ && fits_so_far_ && !expired_ && !held(); }
  [[nodiscard]] bool is_allowed(int microbatches) const;
  /// The plan's first clocks are for a step of that shape; 0: not known.
  [[nodiscard]] static bool is_first(const ClockPlan& plan, int microbatches);
  [[nodiscard]] static ShapeClocks* other_of(ClockPlan& plan, int microbatches);
  void select(int microbatches);
  [[nodiscard]] int fallback() const { return plan_ == nullptr && !held() && !limited() ? 0 : maximum(); }
  [[nodiscard]] bool is_due(std::int64_t iteration) const {
    return next_ && (iteration >= next_->from_iteration || (next_->budget && next_->budget->at_once));
  }
  void fetch();
  void install();
  /// That computation has begun in this step, before the plan came.
  void pass(model::Instruction instruction, int microbatch, int chunk);
  [[gnu::cold]] void misfits(int instruction);
  void show_misfit();
  void retire(std::unique_ptr<ClockPlan> plan);

  // Read for every computation; in one cache line.
  alignas(64) std::unique_ptr<ClockPlan> plan_;  ///< in force
  const PlannedClock* clocks_ = nullptr;         ///< of plan_
  std::size_t num_clocks_ = 0;
  std::size_t position_ = 0;
  std::size_t asked_at_ = 0;
  bool asked_ = false;      ///< clock_for() was called since the last begun()
  bool reordered_ = false;  ///< in this step computations run in another order than the plan's: see ClockPlan::ran
  bool begun_any_ = false;  ///< in this step
  bool expired_ = false;    ///< plan_ has run for as many steps as its window has
  bool fits_ = true;        ///< the last whole step of this shape under plan_ and this one so far fit
  bool fits_so_far_ = true;
  bool fitted_late_ = false;  ///< this step fits, but ran at the highest clock because the previous one did not fit
  bool foreign_ = false;      ///< this step has a shape that plan_ has no clocks for
  std::atomic<bool> held_{false}, shape_held_{false};
  std::atomic<int> maximum_{0}, ceiling_{0};
  ShapeClocks* other_ = nullptr;  ///< of plan_, for this step; null: its first clocks
  int told_ = 0, expected_ = 0;   ///< microbatches of this step: as given, and as in the step before; 0: not known
  int first_misfit_ = -1, misfit_ran_ = -1;  ///< of this step: see misfit_position(), misfit_instruction()
  std::atomic<bool> all_allowed_{true};
  std::array<std::atomic<int>, kMostShapes> allowed_{};  ///< microbatches, plus 1; the first 0 ends the list

  std::atomic<bool> whole_step_{false};
  int steps_ = 0;                    ///< under plan_
  std::unique_ptr<ClockPlan> next_;  ///< taken from the mailbox, in force from a later iteration on
  std::atomic<ClockPlan*> mailbox_{nullptr};
  std::atomic<ClockPlan*> retired_{nullptr};
  std::atomic<std::int64_t> misfit_{0}, version_{0};
  std::atomic<int> misfit_position_{0}, misfit_instruction_{-1};
};

// Inline, so that all code of a hot call is contiguous: after a computation each cache line of code is fetched anew.

inline int PlanFollower::clock_for(model::Instruction instruction, int microbatch, int chunk) {
  if (model::is_constant_time(instruction)) return 0;
  // The loop sets speeds without begin() and end() around its computations.
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

template <class ForEachBegun>
bool PlanFollower::take_at_once(bool asked_began, const ForEachBegun& for_each_begun) {
  fetch();
  if (!next_ || !next_->budget || !next_->budget->at_once) return false;
  if (asked_ && asked_began && !begun_any_) take(asked_at_);
  const std::size_t before = position_;
  const bool reordered = reordered_, known = plan_ != nullptr && fits_so_far_ && num_clocks_ != 0;
  const PlannedClock* const old_clocks = clocks_;
  const std::size_t num_old_clocks = num_clocks_;
  std::unique_ptr<ClockPlan> old = std::move(plan_);
  install();
  select(told_ != 0 ? told_ : expected_);
  position_ = 0;
  asked_ = reordered_ = false;
  fits_so_far_ = fitted_late_ = true;
  steps_ = -1;  // this step does not count
  if (known) {
    for (std::size_t at = 0; at < num_old_clocks; ++at) {
      const PlannedClock& planned = old_clocks[at];
      if (at < before || (reordered && old->ran[at])) pass(planned.instruction, planned.microbatch, planned.chunk);
    }
  } else {
    for_each_begun(
        [this](model::Instruction instruction, int microbatch, int chunk) { pass(instruction, microbatch, chunk); });
  }
  retire(std::move(old));
  return true;
}

inline int PlanFollower::next_clock() const {
  if (!ruling()) return 0;
  if (whole_step() && position_ == 0) return whole_step_clock();
  return position_ < num_clocks_ ? clocks_[position_].clock_mhz : 0;
}

}  // namespace perseus::client
