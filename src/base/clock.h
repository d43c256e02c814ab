// What time it is, injected: the system's clock in a program, one turned by hand in tests.
//
// Problem: delays, leases and expiry must be tested without sleeping. Output: seconds since 1970 (UTC), as a double:
// exact to a microsecond for centuries. Errors: none. Cost: a call. Threads: SystemClock any; HandTurnedClock one.
#pragma once

#include <chrono>

namespace perseus {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  [[nodiscard]] virtual double now_s() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] double now_s() const override {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
};

class HandTurnedClock final : public Clock {
 public:
  explicit HandTurnedClock(double now_s = 0) : now_s_(now_s) {}
  [[nodiscard]] double now_s() const override { return now_s_; }
  void turn_to(double now_s) { now_s_ = now_s; }
  void advance(double by_s) { now_s_ += by_s; }

 private:
  double now_s_;
};

}  // namespace perseus
