// Records begin and end of each computation of each iteration: the training thread writes, another thread reads.
//
// All memory is allocated at the start: a ring of steps, each for up to `capacity` computations. Where the ring is
// full (the reader is late) the step is dropped and counted; computations beyond the capacity are counted too;
// nothing waits.
//
// Problem: measurements inside a training loop must cost next to nothing.
// Input:   begin_step, begin, end, end_step, with times from the caller (ns, any monotonic clock; or handles that
//          stand for times, see cuda_events).
// Output:  whole steps in order, on another thread.
// Cost:    a few stores.
// Threads: one writes, one reads; counts from any.
// Source:  paper section 5 (Profiler).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "planning/model/instruction.h"

namespace perseus::client {

/// One run of one instruction.
struct RecordedComputation {
  std::uint64_t begin = 0;  ///< ns, or a handle
  std::uint64_t end = 0;    ///< the same; 0: never ended
  std::int32_t clock = 0;   ///< requested MHz when it began; 0: no request
  std::int32_t microbatch = 0;
  std::int16_t chunk = 0;
  model::Instruction instruction = model::Instruction::forward;
  std::uint32_t end_position = 0;  ///< position of the boundary at its end, see DeviceProgress; 0: none
};

struct Step {
  bool cuda = false;  ///< marks are handles of cuda_events
  bool train = true;  ///< false: evaluation, of which only begin and end are known
  bool ran = true;    ///< something ran in it, as far as the training thread knows; see GraphSteps
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;
  int microbatches = 0;   ///< 0: not known
  int window = -1;        ///< of profiling; -1: none
  int other_window = -1;  ///< that the rank is to run, and this step has another shape; -1: none
  int window_iterations = 0;
  double paced_s = 0;                             ///< waited for a pace since the step before
  bool window_ends = false;                       ///< after so many iterations, whether usable or not
  std::uint64_t begin_ns = 0, end_ns = 0;         ///< host's clock
  std::uint64_t begin_mark = 0, end_mark = 0;     ///< by the time source, see RecordedComputation::begin
  bool at_maximum = false;                        ///< its plan asks for the highest clock, or there is none
  bool followed = false;                          ///< ran at the clocks of its plan, as far as is known
  bool comparable = true;                         ///< ran at the clocks of its plan, or at the highest one throughout
  bool controlled = true;                         ///< the clock controller worked; false: the driver chose the clock
  bool clean = true;                              ///< every computation was recorded, begun once and ended once
  int graph_clock = 0;                            ///< requested MHz, if the step is a captured graph
  bool placed = true;                             ///< its marks are at the right place on the host's clock
  std::vector<RecordedComputation> computations;  ///< in the order they began; only the first `count` are of this step
  std::size_t count = 0;
};

class StepRecorder {
 public:
  StepRecorder(std::size_t steps, std::size_t capacity);

  // The training thread.
  /// The step under recording; null: this step is not recorded.
  Step* begin_step();
  [[nodiscard]] Step* current() { return current_; }
  void begin(model::Instruction instruction, int microbatch, int chunk, int clock, std::uint64_t at) {
    if (next_ == end_) return spoil();
    *next_++ = {at, 0, clock, microbatch, static_cast<std::int16_t>(chunk), instruction, 0};
  }
  /// Ends the latest open computation of that instruction.
  void end(model::Instruction instruction, std::uint64_t at, std::uint32_t position = 0) {
    for (RecordedComputation* computation = next_; computation != first_;) {
      --computation;
      if (computation->instruction == instruction && computation->end == 0) {
        computation->end = at;
        computation->end_position = position;
        return;
      }
      if (next_ - computation > kMostOpen) break;
    }
    spoil();
  }
  /// Prefetches memory that begin() and end() need, while the caller does other work.
  void expect_begin() const { __builtin_prefetch(next_, 1); }
  void expect_end() const {
    if (next_ != first_) __builtin_prefetch(next_ - 1, 1);
  }
  /// Calls use(computation, place in its step) for each recorded computation that the reader may not have released, the
  /// current step's last.
  template <class Use>
  void for_each_kept(const Use& use) const {
    for (std::uint64_t at = read_.load(std::memory_order_acquire); at != written_.load(std::memory_order_relaxed);
         ++at) {
      const Step& step = ring_[at % ring_.size()];
      for (std::size_t i = 0; i < step.count; ++i) use(step.computations[i], i);
    }
    for_each_begun(use);
  }
  /// The same for the current step.
  template <class Use>
  void for_each_begun(const Use& use) const {
    for (const RecordedComputation* one = first_; one != next_; ++one)
      use(*one, static_cast<std::size_t>(one - first_));
  }
  void end_step();

  // The reader.
  /// The oldest step that has ended and was not released, or null.
  const Step* oldest();
  void release();

  [[nodiscard]] std::int64_t lost_steps() const { return lost_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::ptrdiff_t kMostOpen = 4;  ///< maximum of concurrently open computations
  void spoil() {
    if (current_ != nullptr) current_->clean = false;
  }
  // Read by begin() and end(); in one cache line.
  alignas(64) RecordedComputation* next_ = nullptr;        ///< where the next computation is stored, ...
  RecordedComputation *first_ = nullptr, *end_ = nullptr;  ///< ... within these; all equal: recording is off
  Step* current_ = nullptr;
  std::vector<Step> ring_;
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
  std::atomic<std::int64_t> lost_{0};
};

}  // namespace perseus::client
