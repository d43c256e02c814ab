// Waits at the begin of a step until the time since the last iteration's begin is the period that the server asks for.
//
// Problem: below the power of its slowest plan a job can only wait. A wait in a training process must end by itself,
//          whatever the server, the network or another thread does.
// Input:   the period, with each plan, and longer ones from later times on, which hold without the server;
//          the begin of each iteration.
// Output:  the training thread sleeps, and does not spin, from the end of an iteration on: at most kLongestPace_s an
//          iteration, until begin + period, and until the device has done what was launched: a host that stays ahead of
//          its device would wait without effect until the device has caught up. The period counts from the last wait's
//          end, so it is never shorter than asked for, and begins of ranks keep their distances. A shorter period,
//          none, or stop() ends a wait at once.
// Errors:  none; without a period nothing waits.
// Cost:    without a period a few relaxed loads an iteration; before a later period a clock reading more.
// Threads: wait() the training thread; the rest any.
// Source:  docs/decisions/0054-falls-are-sent-ahead.md, docs/decisions/0057-pacing.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

namespace perseus::client {

inline constexpr double kLongestPace_s = 10;

/// From that time on, unless the period before it is longer.
struct LaterPace {
  std::uint64_t at_ns = 0;  ///< of the pacer's clock
  double period_s = 0;
};

class Pacer {
 public:
  /// `now_ns`: monotonic; default: the host's clock.
  explicit Pacer(std::function<std::uint64_t()> now_ns = {});

  /// From the next iteration on, and for a wait under way; replaces all before. `period_s`: of an iteration; 0: none.
  void set(double period_s, std::vector<LaterPace> later = {});
  /// The later paces have other times; nothing where there are none.
  void move_later(std::vector<LaterPace> later);
  /// No wait any more, whatever set() says.
  void stop();
  /// An iteration that began then has ended; 0: there was none. `idle()`: the device has done it.
  template <class Idle>
  void wait(std::uint64_t begun_ns, const Idle& idle) {
    if (begun_ns != 0 && paces()) wait_for(begun_ns, idle);
  }

  /// That holds now.
  [[nodiscard]] double period_s() const;
  [[nodiscard]] bool waits() const { return waits_.load(std::memory_order_acquire); }
  /// Waited since the start.
  [[nodiscard]] double paced_s() const { return paced_s_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool paces() const {
    if (period_s_.load(std::memory_order_relaxed) > 0) return true;
    const std::uint64_t first_ns = first_later_ns_.load(std::memory_order_relaxed);
    return first_ns != kNever && now_ns_() >= first_ns;
  }
  // Call with the lock.
  void take(double period_s, std::vector<LaterPace> later);
  [[nodiscard]] double period_at(std::uint64_t now_ns) const;
  [[gnu::cold]] void wait_for(std::uint64_t begun_ns, const std::function<bool()>& idle);

  std::function<std::uint64_t()> now_ns_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::vector<LaterPace> later_;
  std::atomic<double> period_s_{0}, paced_s_{0};       ///< period_s_: without later_
  std::atomic<std::uint64_t> first_later_ns_{kNever};  ///< of later_
  std::atomic<bool> waits_{false};
};

}  // namespace perseus::client
