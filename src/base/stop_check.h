// Polls, at a bounded rate, whether long work should stop.
//
// Input:   a function that returns true when the work should stop; empty: the work always runs to its end.
// Output:  stop() returns true from the function's first `true` on, and does not call the function again.
// Cost:    a subtraction per call of stop(); one call of the function per kCostBetweenQuestions.
// Threads: one thread per object; the function may read what other threads set.
#pragma once

#include <functional>
#include <utility>

#include "base/result.h"

namespace perseus {

class StopCheck {
 public:
  /// In elementary operations of some nanoseconds each: about two milliseconds of work.
  static constexpr long kCostBetweenQuestions = 1'000'000;

  StopCheck() = default;
  explicit StopCheck(std::function<bool()> should_stop, long cost_between_questions = kCostBetweenQuestions)
      : should_stop_(std::move(should_stop)), interval_(cost_between_questions) {}
  StopCheck(const StopCheck&) = delete;
  StopCheck& operator=(const StopCheck&) = delete;
  /// For work that always runs to its end.
  static StopCheck& never() {
    thread_local StopCheck check;
    return check;
  }

  /// Call it after every piece of work, with the cost of that piece in elementary operations.
  bool stop(long cost) {
    left_ -= cost;
    return left_ > 0 ? stopped_ : ask();
  }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  bool ask() {
    left_ = interval_;
    if (!stopped_ && should_stop_) stopped_ = should_stop_();
    return stopped_;
  }
  std::function<bool()> should_stop_;
  long interval_ = kCostBetweenQuestions;
  long left_ = 0;  // 0: the first call of stop() calls the function
  bool stopped_ = false;
};

/// The error that planning returns after a StopCheck has stopped it.
inline Error planning_stopped() { return {ErrorCode::unavailable, "planning was stopped before its end"}; }

}  // namespace perseus
