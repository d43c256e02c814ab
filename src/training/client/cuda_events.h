// Times of computations by CUDA events, without ever waiting for the device.
//
// begin() and end() run when the host enqueues work; the GPU executes it later. Each event's time follows from the
// event before it. Two kinds of moments bound the offset between both time scales from both sides (time_offset.h):
// when the host enqueued a step's first event and when a boundary was observed to be reached (reached_by()); and
// probes, events on an otherwise idle stream.
//
// Input:   a stream; mark() in the training thread records an event there.
// Output:  once the GPU has passed a step's last event (queried, never waited for), the step with its times on the
//          host's clock. Nothing is recorded during a graph capture of the stream.
// Errors:  open() returns the reason; a device that fails later makes failed() true permanently.
// Cost:    a driver call per mark; one query per step; three driver calls per probe, one a second after the first
//          few.
// Threads: mark() and set_stream() the training thread; finished(), reached_by(), probe(), on_host() and release()
//          one other; failed() any.
// Source:  paper section 5 (Profiler).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "training/client/cuda_driver.h"
#include "training/client/step_recorder.h"
#include "training/client/time_offset.h"

namespace perseus::client {

class CudaEvents {
 public:
  /// Uses the calling thread's current context; `events` may be outstanding at once. `now_s`: default
  /// CLOCK_MONOTONIC.
  static Result<std::unique_ptr<CudaEvents>> open(std::shared_ptr<const CudaDriver> driver, void* stream,
                                                  std::size_t events, std::function<double()> now_s = {});
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;
  ~CudaEvents();

  /// Returns 0 if no event is free, a graph capture of the stream runs, or the thread has no context.
  std::uint64_t mark();
  /// A graph capture of the stream ran at the last mark().
  [[nodiscard]] bool captured() const { return captured_; }
  void set_stream(void* stream) { stream_ = stream; }

  /// The GPU has completed all of the step.
  bool finished(const Step& step);
  /// The device was observed past that position at that time (CLOCK_MONOTONIC).
  void reached_by(std::uint32_t position, std::uint64_t at_ns) { seen_.push_back({position, at_ns}); }
  /// Enqueues a probe or checks the previous one, if it is time. Call periodically.
  void probe();
  /// The step with marks as ns of the host's clock; a step with missing marks is not clean. `placed` is false while
  /// the offset to the host's time is not known.
  Step on_host(const Step& step);
  /// The step's events may be used again.
  void release(const Step& step);

  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  CudaEvents(std::shared_ptr<const CudaDriver> driver, std::function<double()> now_s)
      : driver_(std::move(driver)), now_s_(std::move(now_s)) {}
  [[nodiscard]] void* event(std::uint64_t mark) const { return events_[mark % events_.size()]; }
  double elapsed_s(std::uint64_t from, std::uint64_t to);
  void enter();
  void bound_offset(const Step& step);
  void take_probe(double done_s);

  std::shared_ptr<const CudaDriver> driver_;
  std::function<double()> now_s_;
  void* stream_ = nullptr;
  void* context_ = nullptr;
  std::vector<void*> events_;
  std::uint64_t next_ = 1;
  bool captured_ = false;
  std::atomic<std::uint64_t> free_before_{1};  ///< marks below are not needed any more
  std::atomic<bool> failed_{false};

  // Of the other thread.
  struct Seen {
    std::uint32_t position;
    std::uint64_t at_ns;
  };
  bool context_set_ = false;
  std::deque<Seen> seen_;
  std::uint64_t base_ = 0;  ///< first mark of the last step
  double base_s_ = 0;       ///< its time on the GPU's own scale
  TimeOffset offset_;
  void* probe_stream_ = nullptr;  ///< null: no probes
  void* probe_event_ = nullptr;
  double probe_enqueued_s_ = -1;  ///< negative: no probe is outstanding
  double next_probe_s_ = 0;
  int probes_ = 0;
};

}  // namespace perseus::client
