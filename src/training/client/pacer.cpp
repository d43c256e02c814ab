#include "training/client/pacer.h"

#include <chrono>
#include <utility>

#include "training/client/call_cost.h"

namespace perseus::client {
namespace {

constexpr std::chrono::milliseconds kLookAgain{1};  ///< whether the device is idle

}  // namespace

Pacer::Pacer(std::function<std::uint64_t()> now_ns) : now_ns_(std::move(now_ns)) {
  if (!now_ns_) now_ns_ = host_now_ns;
}

void Pacer::set(double period_s, std::vector<LaterPace> later) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) take(period_s, std::move(later));
}

void Pacer::move_later(std::vector<LaterPace> later) {
  const std::lock_guard lock(mutex_);
  if (!later_.empty()) take(period_s_.load(std::memory_order_relaxed), std::move(later));
}

void Pacer::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  take(0, {});
}

void Pacer::take(double period_s, std::vector<LaterPace> later) {
  later_ = std::move(later);
  std::uint64_t first_ns = kNever;
  for (const LaterPace& one : later_) first_ns = std::min(first_ns, one.at_ns);
  first_later_ns_.store(first_ns, std::memory_order_relaxed);
  period_s_.store(period_s, std::memory_order_relaxed);
  changed_.notify_all();
}

double Pacer::period_s() const {
  const std::lock_guard lock(mutex_);
  return period_at(now_ns_());
}

double Pacer::period_at(std::uint64_t now_ns) const {
  double period = period_s_.load(std::memory_order_relaxed);
  for (const LaterPace& later : later_) {
    if (later.at_ns <= now_ns) period = std::max(period, later.period_s);
  }
  return period;
}

void Pacer::wait_for(std::uint64_t begun_ns, const std::function<bool()>& idle) {
  const auto ns = [](double seconds) { return static_cast<std::uint64_t>(1e9 * std::max(seconds, 0.0)); };
  const std::uint64_t from_ns = now_ns_(), latest_ns = from_ns + ns(kLongestPace_s);
  std::uint64_t now_ns = from_ns;
  std::unique_lock lock(mutex_);
  waits_.store(true, std::memory_order_release);
  for (; now_ns >= from_ns; now_ns = now_ns_()) {  // a time source that goes back ends the wait
    const double period = period_at(now_ns);
    const std::uint64_t due_ns = std::min(begun_ns + ns(period), latest_ns);
    if (now_ns < due_ns) {
      changed_.wait_for(lock, std::chrono::nanoseconds(due_ns - now_ns));
    } else if (period > 0 && now_ns < latest_ns && !idle()) {
      changed_.wait_for(lock, kLookAgain);
    } else {
      break;
    }
  }
  waits_.store(false, std::memory_order_release);
  paced_s_.store(paced_s() + 1e-9 * static_cast<double>(std::max(now_ns, from_ns) - from_ns),
                 std::memory_order_relaxed);
}

}  // namespace perseus::client
