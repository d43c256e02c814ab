// When each computation of each iteration began and ended: written by the training thread, read by another.
//
// Problem: what is measured inside a training loop must cost it next to nothing. Input: begin_step, begin, end,
// end_step, with times that the caller took (ns, any monotonic clock; or handles that stand for times, see
// cuda_events). Output: whole steps in order, on another thread. Everything is allocated at the start: a ring of steps,
// each with room for `capacity` computations. Where the ring is full (the reader is late) a step is not recorded, and
// counted; computations beyond the capacity are counted too; nothing waits. Errors: none. Cost: a few stores. Threads:
// one writes, one reads; counts from any. Source: paper section 5 (Profiler).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "planning/model/instruction.h"

namespace perseus::client {

/// One run of one instruction.
struct RecordedComputation {
  std::uint64_t begin = 0;  ///< ns, or a handle
  std::uint64_t end = 0;    ///< the same; 0: never ended
  std::int32_t clock = 0;   ///< MHz that was asked for when it began; 0: none was
  std::int32_t microbatch = 0;
  std::int16_t chunk = 0;
  model::Instruction instruction = model::Instruction::forward;
  std::uint32_t end_position = 0;  ///< of the boundary at its end, see DeviceProgress; 0: none
};

struct Step {
  bool cuda = false;  ///< marks are those of cuda_events
  bool train = true;  ///< else evaluation: only its begin and end are known
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;
  int window = -1;  ///< of profiling; -1: none
  int window_iterations = 0;
  bool window_ends = false;                       ///< after so many iterations, whether they could be used or not
  std::uint64_t begin_ns = 0, end_ns = 0;         ///< host's clock
  std::uint64_t begin_mark = 0, end_mark = 0;     ///< by the time source, see Computation::begin
  bool at_maximum = false;                        ///< its plan asks for the highest clock, or there is none
  bool followed = false;                          ///< ran at the clocks of its plan, as far as is known
  bool controlled = true;                         ///< who sets clocks was there; else the clock was the driver's
  bool clean = true;                              ///< every computation was recorded, begun once and ended once
  bool placed = true;                             ///< its marks are at the right place on the host's clock
  std::vector<RecordedComputation> computations;  ///< in the order they began; only the first `count` are of this step
  std::size_t count = 0;
};

class StepRecorder {
 public:
  StepRecorder(std::size_t steps, std::size_t capacity);

  // The training thread.
  /// The step that is being recorded, or null: this one is not.
  Step* begin_step();
  [[nodiscard]] Step* current() { return current_; }
  void begin(model::Instruction instruction, int microbatch, int chunk, int clock, std::uint64_t at) {
    if (next_ == end_) return spoil();
    *next_++ = {at, 0, clock, microbatch, static_cast<std::int16_t>(chunk), instruction, 0};
  }
  /// Ends the latest computation of that instruction that has not ended yet.
  void end(model::Instruction instruction, std::uint64_t at, std::uint32_t position = 0) {
    for (RecordedComputation* computation = next_; computation != first_;) {
      --computation;
      if (computation->instruction == instruction && computation->end == 0) {
        computation->end = at;
        computation->end_position = position;
        return;
      }
      if (next_ - computation > most_open) break;
    }
    spoil();
  }
  /// Have what begin() and end() need fetched, while the caller does something else.
  void expect_begin() const { __builtin_prefetch(next_, 1); }
  void expect_end() const {
    if (next_ != first_) __builtin_prefetch(next_ - 1, 1);
  }
  void end_step();

  // The reader.
  /// The oldest step that has ended and was not released, or null.
  const Step* oldest();
  void release();

  [[nodiscard]] std::int64_t lost_steps() const { return lost_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::ptrdiff_t most_open = 4;  ///< computations that may be under way at once
  void spoil() {
    if (current_ != nullptr) current_->clean = false;
  }
  // What begin() and end() look at, in one line of the cache.
  alignas(64) RecordedComputation* next_ = nullptr;        ///< where the next computation goes, ...
  RecordedComputation *first_ = nullptr, *end_ = nullptr;  ///< ... of these; all the same: nowhere
  Step* current_ = nullptr;
  std::vector<Step> ring_;
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
  std::atomic<std::int64_t> lost_{0};
};

}  // namespace perseus::client
