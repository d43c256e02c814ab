#include "client/cuda_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace perseus::client {
namespace {

constexpr double kPeriod_s = 5;  ///< clocks drift by some 20 us in it

}  // namespace

/// The context may be gone by now, and the events with it: they are left to the driver then.
CudaEvents::~CudaEvents() {
  void* context = nullptr;
  if (failed() || driver_->context_current(&context) != CudaDriver::kSuccess || context != context_) return;
  for (void* const event : events_) driver_->event_destroy(event);
}

Result<std::unique_ptr<CudaEvents>> CudaEvents::open(std::shared_ptr<const CudaDriver> driver, void* stream,
                                                     std::size_t events) {
  std::unique_ptr<CudaEvents> made(new CudaEvents(std::move(driver)));
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
  return made;
}

std::uint64_t CudaEvents::mark() {
  captured_ = driver_->capturing(stream_);
  if (captured_ || failed() || next_ - free_before_.load(std::memory_order_acquire) >= events_.size()) return 0;
  if (driver_->event_record(event(next_), stream_) != CudaDriver::kSuccess) {
    failed_.store(true, std::memory_order_release);
    return 0;
  }
  return next_++;
}

bool CudaEvents::finished(const Step& step) {
  if (failed()) return true;
  if (!std::exchange(context_set_, true)) driver_->enter(context_);
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

void CudaEvents::bound_offset(const Step& step) {
  const double enqueued_s = static_cast<double>(step.begin_ns) * 1e-9;
  if (enqueued_s - period_began_s_ > kPeriod_s) {
    bounds_[1] = std::exchange(bounds_[0], OffsetBounds{});
    period_began_s_ = enqueued_s;
  }
  OffsetBounds& bounds = bounds_[0];
  bounds.from_s = std::max(bounds.from_s, enqueued_s - base_s_);
  const auto passed = [](std::uint32_t position, std::uint32_t here) {
    return static_cast<std::int32_t>(here - position) >= 0;
  };
  for (std::size_t i = 0; i < step.count && !seen_.empty(); ++i) {
    const Computation& c = step.computations[i];
    if (c.end == 0 || c.end_position == 0) continue;
    // Positions before this step's were of steps that are gone.
    while (!seen_.empty() && passed(seen_.front().position, c.end_position)) {
      if (seen_.front().position == c.end_position) {
        const double seen_s = static_cast<double>(seen_.front().at_ns) * 1e-9;
        bounds.to_s = std::min(bounds.to_s, seen_s - base_s_ - elapsed_s(step.begin_mark, c.end));
      }
      seen_.pop_front();
    }
  }
}

double CudaEvents::offset_s() const {
  const double from_s = std::max(bounds_[0].from_s, bounds_[1].from_s);
  const double to_s = std::min(bounds_[0].to_s, bounds_[1].to_s);
  return to_s < 1e299 ? std::max(from_s, to_s) : from_s;
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
  const double began_s = offset_s() + base_s_;
  const auto host_ns = [&](std::uint64_t mark) {
    const double since = mark == 0 ? 0 : elapsed_s(step.begin_mark, mark);
    if (mark == 0) result.clean = false;
    return static_cast<std::uint64_t>((began_s + since) * 1e9);
  };
  for (std::size_t i = 0; i < step.count; ++i) {
    Computation& c = result.computations[i];
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
