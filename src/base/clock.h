// Injected time source: the system's clock in a program, a manually advanced clock in tests.
//
// Problem: tests of delays, leases and expiry must not sleep, and a step of the system's clock must not break them.
// Output:  seconds since 1970 (UTC), as a double: exact to a microsecond for centuries.
// Cost:    a call.
// Threads: SystemClock and UnsteppedClock are safe concurrently; one thread uses a HandTurnedClock.
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

/// The system's time at construction plus the time elapsed since: it never jumps and ignores later steps of the
/// system's clock. It includes NTP's small corrections of the clock's rate.
class UnsteppedClock final : public Clock {
 public:
  [[nodiscard]] double now_s() const override {
    return began_s_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  double began_s_ = SystemClock().now_s();
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
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
