// Waits at the begin of an iteration until the time since the last one's begin is the period that the server asks for.
//
// Problem: below the power of its slowest plan a job can only wait. A wait in a training process must end by itself,
//          whatever the server, the network or another thread does.
// Input:   the period, with each plan; the begin of each iteration.
// Output:  the training thread sleeps, and does not spin, from the end of an iteration on: at most kLongestPace_s an
//          iteration, until begin + period, and until the device has done what was launched: a host that stays ahead of
//          its device would wait without effect until the device has caught up. The period counts from the last wait's
//          end, so it is never shorter than asked for, and begins of ranks keep their distances. A shorter period,
//          none, or stop() ends a wait at once.
// Errors:  none; without a period nothing waits.
// Cost:    without a period a relaxed load an iteration.
// Threads: wait() the training thread; the rest any.
// Source:  docs/decisions/0057-pacing.md.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace perseus::client {

inline constexpr double kLongestPace_s = 10;

class Pacer {
 public:
  /// `now_ns`: monotonic; default: the host's clock.
  explicit Pacer(std::function<std::uint64_t()> now_ns = {});

  /// From the next iteration on, and for a wait under way. 0: none.
  void set(double period_s);
  /// No wait any more, whatever set() says.
  void stop();
  /// An iteration that began then has ended; 0: there was none. `idle()`: the device has done it.
  template <class Idle>
  void wait(std::uint64_t begun_ns, const Idle& idle) {
    if (period_s_.load(std::memory_order_relaxed) > 0 && begun_ns != 0) wait_for(begun_ns, idle);
  }

  [[nodiscard]] double period_s() const { return period_s_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool waits() const { return waits_.load(std::memory_order_acquire); }
  /// Waited since the start.
  [[nodiscard]] double paced_s() const { return paced_s_.load(std::memory_order_relaxed); }

 private:
  [[gnu::cold]] void wait_for(std::uint64_t begun_ns, const std::function<bool()>& idle);

  std::function<std::uint64_t()> now_ns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::atomic<double> period_s_{0}, paced_s_{0};
  std::atomic<bool> waits_{false};
};

}  // namespace perseus::client
