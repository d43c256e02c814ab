// Times of computations by CUDA events, without ever waiting for the device.
//
// begin() and end() run when work is enqueued; the GPU does it later. An event's time is known from the one before it.
// Where the two time scales meet is bounded from both sides (time_offset.h): by the moments at which a step's first
// event was enqueued and at which a boundary was seen to be reached (reached_by()), and by probes: events on an idle
// stream of their own.
//
// Input:   a stream; mark() in the training thread records an event there.
// Output:  once the GPU has passed a step's last event (queried, never waited for), the step with its times on the
//          host's clock. Nothing is recorded while a stream is being captured into a graph.
// Errors:  open() says why not; a device that fails later makes failed() true for good.
// Cost:    a driver call per mark; one query per step; three driver calls per probe, one a second after the first few.
// Threads: mark() and set_stream() the training thread; finished(), reached_by(), probe(), on_host() and release() one
//          other; failed() any.
// Source:  paper section 5 (Profiler).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "training/client/cuda_driver.h"
#include "training/client/step_recorder.h"
#include "training/client/time_offset.h"

namespace perseus::client {

class CudaEvents {
 public:
  /// In the calling thread's current context; `events` may be outstanding at once. `now_s`: CLOCK_MONOTONIC if not
  /// given.
  static Result<std::unique_ptr<CudaEvents>> open(std::shared_ptr<const CudaDriver> driver, void* stream,
                                                  std::size_t events, std::function<double()> now_s = {});
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;
  ~CudaEvents();

  /// 0: none is free, or the stream is being captured.
  std::uint64_t mark();
  /// The stream was being captured at the last mark().
  [[nodiscard]] bool captured() const { return captured_; }
  void set_stream(void* stream) { stream_ = stream; }

  /// The GPU has done all of the step.
  bool finished(const Step& step);
  /// Somebody saw, at that time (CLOCK_MONOTONIC), that the device was past that position.
  void reached_by(std::uint32_t position, std::uint64_t at_ns) { seen_.push_back({position, at_ns}); }
  /// Enqueues a probe or looks at the one before, if it is time. Call it now and then.
  void probe();
  /// The step with marks as ns of the host's clock; a step with marks that are missing is not clean. `placed` is false
  /// while the offset to the host's time is not known.
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

  // The other thread's.
  struct Seen {
    std::uint32_t position;
    std::uint64_t at_ns;
  };
  bool context_set_ = false;
  std::deque<Seen> seen_;
  std::uint64_t base_ = 0;  ///< the last step's first mark
  double base_s_ = 0;       ///< its time, on the GPU's own scale
  TimeOffset offset_;
  void* probe_stream_ = nullptr;  ///< null: no probes
  void* probe_event_ = nullptr;
  double probe_enqueued_s_ = -1;  ///< negative: none is under way
  double next_probe_s_ = 0;
  int probes_ = 0;
};

}  // namespace perseus::client
