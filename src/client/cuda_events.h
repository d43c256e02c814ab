// Times of computations by CUDA events, with the library found at run time and without ever waiting for the device.
//
// Problem: begin() and end() run when work is enqueued; the GPU does it later. Input: a stream; mark() in the training
// thread records an event there. Output: once the GPU has passed a step's last event (asked, never waited for), the
// step with its times on the host's clock. An event's time is known from the one before it; where the two clocks meet
// is known from below: the GPU reaches a step's first event no sooner than the host enqueues it, so a device that was
// idle once gives it to some microseconds. While a stream is being captured into a graph nothing is recorded. Errors:
// open() says why not; a device that fails later makes failed() true for good. Cost: a driver call a mark; one query a
// step. libcuda.so.1 is taken from $PERSEUS_CUDA if that is set. Threads: mark() and set_stream() the training thread;
// finished(), on_host() and release() one other; failed() any. Source: paper section 5 (Profiler).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/step_recorder.h"

namespace perseus::client {

class CudaEvents {
 public:
  /// In the calling thread's current context; `events` may be on their way at once.
  static Result<std::unique_ptr<CudaEvents>> open(void* stream, std::size_t events);
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;
  ~CudaEvents();

  /// 0: none is free, or the stream is being captured.
  std::uint64_t mark();
  void set_stream(void* stream) { stream_ = stream; }

  /// The GPU has done all of the step.
  bool finished(const Step& step);
  /// The step with marks as ns of the host's clock; a step with marks that are missing is not clean.
  Step on_host(const Step& step);
  /// The step's events may be used again.
  void release(const Step& step);

  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  struct Library;
  explicit CudaEvents(std::unique_ptr<Library> library);
  [[nodiscard]] void* event(std::uint64_t mark) const { return events_[mark % events_.size()]; }
  double elapsed_s(std::uint64_t from, std::uint64_t to);

  std::unique_ptr<Library> library_;
  void* stream_ = nullptr;
  void* context_ = nullptr;
  std::vector<void*> events_;
  std::uint64_t next_ = 1;
  std::atomic<std::uint64_t> free_before_{1};  ///< marks below are not needed any more
  std::atomic<bool> failed_{false};

  // The other thread's.
  bool context_set_ = false;
  std::uint64_t base_ = 0;  ///< the last step's first mark
  double base_s_ = 0;       ///< its time, on the GPU's own scale
  double offset_s_ = 0;     ///< what to add for the host's clock, known from below
  bool has_offset_ = false;
};

}  // namespace perseus::client
