#include "training/client/cuda_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "training/client/call_cost.h"

namespace perseus::client {
namespace {

constexpr double kProbeEvery_s = 1, kFirstProbesEvery_s = 0.04;
constexpr int kFirstProbes = 8;

}  // namespace

/// The context, and its events, may be gone by now: then the driver owns them.
CudaEvents::~CudaEvents() {
  void* context = nullptr;
  if (failed() || driver_->context_current(&context) != CudaDriver::kSuccess || context != context_) return;
  for (void* const event : events_) driver_->event_destroy(event);
}

Result<std::unique_ptr<CudaEvents>> CudaEvents::open(std::shared_ptr<const CudaDriver> driver, void* stream,
                                                     std::size_t events, std::function<double()> now_s) {
  if (!now_s) now_s = host_now_s;
  std::unique_ptr<CudaEvents> made(new CudaEvents(std::move(driver), std::move(now_s)));
  const int current = made->driver_->context_current(&made->context_);
  if (current != CudaDriver::kSuccess || made->context_ == nullptr) {
    return Error{ErrorCode::unavailable, fmt::format("this thread has no CUDA context (cuCtxGetCurrent: {})", current)};
  }
  made->stream_ = stream;
  for (std::size_t i = 0; i < events; ++i) {
    void* event = nullptr;
    if (const int code = made->driver_->event_create(&event, CudaDriver::kEventDefault); code != CudaDriver::kSuccess) {
      return Error{ErrorCode::unavailable, fmt::format("cuEventCreate: error {}", code)};
    }
    made->events_.push_back(event);
  }
  // Without probes the offset is less well known.
  void* probe_event = nullptr;
  if (made->driver_->stream_create != nullptr &&
      made->driver_->event_create(&probe_event, CudaDriver::kEventDefault) == CudaDriver::kSuccess &&
      made->driver_->stream_create(&made->probe_stream_, CudaDriver::kStreamNonBlocking) == CudaDriver::kSuccess) {
    made->probe_event_ = probe_event;
  } else {
    made->probe_stream_ = nullptr;
  }
  return made;
}

std::uint64_t CudaEvents::mark() {
  captured_ = driver_->capturing(stream_);
  if (captured_ || failed() || next_ - free_before_.load(std::memory_order_acquire) >= events_.size()) return 0;
  const int code = driver_->event_record(event(next_), stream_);
  if (code == CudaDriver::kSuccess) return next_++;
  if (!driver_->only_lacks_context(code)) failed_.store(true, std::memory_order_release);
  return 0;
}

bool CudaEvents::finished(const Step& step) {
  if (failed()) return true;
  enter();
  std::uint64_t last = std::max(step.begin_mark, step.end_mark);
  for (std::size_t i = 0; i < step.count; ++i) last = std::max(last, step.computations[i].end);
  if (last == 0) return true;
  const int code = driver_->event_query(event(last));
  if (code != CudaDriver::kSuccess && code != CudaDriver::kNotReady) failed_.store(true, std::memory_order_release);
  return code != CudaDriver::kNotReady;
}

double CudaEvents::elapsed_s(std::uint64_t from, std::uint64_t to) {
  float milliseconds = 0;
  if (driver_->event_elapsed(&milliseconds, event(from), event(to)) != CudaDriver::kSuccess) {
    failed_.store(true, std::memory_order_release);
  }
  return static_cast<double>(milliseconds) * 1e-3;
}

void CudaEvents::enter() {
  if (!std::exchange(context_set_, true)) driver_->enter(context_);
}

/// A probe that fails ends probing, nothing else.
void CudaEvents::probe() {
  if (probe_stream_ == nullptr || base_ == 0 || failed()) return;
  enter();
  int code = CudaDriver::kNotReady;
  if (probe_enqueued_s_ >= 0) {
    code = driver_->event_query(probe_event_);
    if (code == CudaDriver::kSuccess) take_probe(-1);
  } else if (const double enqueued_s = now_s_(); enqueued_s >= next_probe_s_) {
    next_probe_s_ = enqueued_s + (probes_++ < kFirstProbes ? kFirstProbesEvery_s : kProbeEvery_s);
    probe_enqueued_s_ = enqueued_s;
    code = driver_->event_record(probe_event_, probe_stream_);
    if (code == CudaDriver::kSuccess) code = driver_->event_query(probe_event_);
    if (code == CudaDriver::kSuccess) take_probe(now_s_());
  }
  if (code != CudaDriver::kSuccess && code != CudaDriver::kNotReady) probe_stream_ = nullptr;
}

void CudaEvents::take_probe(double done_s) {
  float milliseconds = 0;
  if (driver_->event_elapsed(&milliseconds, event(base_), probe_event_) != CudaDriver::kSuccess) {
    probe_stream_ = nullptr;
    return;
  }
  offset_.probed(base_s_ + static_cast<double>(milliseconds) * 1e-3, std::exchange(probe_enqueued_s_, -1), done_s);
}

void CudaEvents::bound_offset(const Step& step) {
  offset_.enqueued(base_s_, static_cast<double>(step.begin_ns) * 1e-9);
  const auto passed = [](std::uint32_t position, std::uint32_t here) {
    return static_cast<std::int32_t>(here - position) >= 0;
  };
  for (std::size_t i = 0; i < step.count && !seen_.empty(); ++i) {
    const RecordedComputation& c = step.computations[i];
    if (c.end == 0 || c.end_position == 0) continue;
    // Positions before this step's belong to released steps.
    while (!seen_.empty() && passed(seen_.front().position, c.end_position)) {
      if (seen_.front().position == c.end_position) {
        offset_.seen(base_s_ + elapsed_s(step.begin_mark, c.end), static_cast<double>(seen_.front().at_ns) * 1e-9);
      }
      seen_.pop_front();
    }
  }
}

Step CudaEvents::on_host(const Step& step) {
  Step result = step;
  if (step.begin_mark == 0 || step.end_mark == 0) result.clean = false;
  if (step.begin_mark == 0 || failed()) {
    result.count = 0;
    result.begin_mark = step.begin_ns;
    result.end_mark = step.end_ns;
    result.clean = false;
    return result;
  }
  if (base_ != 0) base_s_ += elapsed_s(base_, step.begin_mark);
  base_ = step.begin_mark;
  bound_offset(step);
  const double began_s = offset_.seconds() + base_s_;
  result.placed = offset_.known();
  const auto host_ns = [&](std::uint64_t mark) {
    const double since = mark == 0 ? 0 : elapsed_s(step.begin_mark, mark);
    if (mark == 0) result.clean = false;
    return static_cast<std::uint64_t>((began_s + since) * 1e9);
  };
  for (std::size_t i = 0; i < step.count; ++i) {
    RecordedComputation& c = result.computations[i];
    c.begin = host_ns(c.begin);
    c.end = host_ns(c.end);
  }
  result.begin_ns = result.begin_mark = host_ns(step.begin_mark);
  if (step.end_mark != 0) result.end_ns = result.end_mark = host_ns(step.end_mark);
  return result;
}

void CudaEvents::release(const Step& step) {
  // The step's first event stays: the next step's time is counted from it.
  if (step.begin_mark != 0) free_before_.store(step.begin_mark, std::memory_order_release);
}

}  // namespace perseus::client
