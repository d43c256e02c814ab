// Judges whether an energy counter can be believed: by its own steps, the power sensor and the power limit.
//
// Problem: some counters stand still, count in another unit, jump, wrap or go back by turns. Believed, they become
//          savings that do not exist.
// Method:  a step of the counter is impossible if it is negative, or more than 1.5 times the highest power limit seen
//          (without one: 4 times the highest power) in the time that it can have taken. Of the first 10 s, and of each
//          minute after it: the sum of the possible steps over the integral of the power sensor. Power is read at
//          irregular times, since the counter and the iterations are periodic.
// Input:   readings of the counter and of the power sensor in order of time, s; power limits.
// Output:  the powers that an interval can have; whether the counter is refused (it stands still for 10 s, a quarter of
//          its steps is impossible, or it shows less than a third or more than three times the energy of the sensor),
//          and what is wrong, also with a counter in use (a single jump, another ratio than 1 / 1.3 to 1.3).
// Errors:  none; without a power sensor the limit alone judges.
// Cost:    a few operations a reading; 10 readings of power a second at first, later one.
#pragma once

#include <string>

namespace perseus::client {

class CounterCheck {
 public:
  /// Energy and power are those of a module (GPU and CPU), and the limits are not.
  void of_module() { of_module_ = true; }
  void limit(double watts);
  void counter(double at_s, double energy_j);
  /// The counter could not be read.
  void forget_counter() { known_ = false; }
  /// Not positive: not known.
  void power(double at_s, double watts);
  [[nodiscard]] double next_power_s() const { return next_power_s_; }
  /// True: the judgment has changed.
  bool judge(double now_s);

  [[nodiscard]] double least_w() const;
  [[nodiscard]] double most_w() const;
  [[nodiscard]] bool refused() const { return refused_; }
  /// Empty: nothing.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  struct Window {
    double from_s = -1;
    int steps = 0, impossible = 0;
    double gained_j = 0, took_s = 0, integrated_j = 0;
    bool has_power = true;
  };
  struct Judgment {
    bool refused = false;
    std::string wrong;
  };
  [[nodiscard]] Judgment judged(const Window& window, double took_s) const;

  bool of_module_ = false;
  double highest_limit_w_ = 0, highest_power_w_ = 0, power_w_ = 0;
  double power_at_s_ = -1, next_power_s_ = 0;
  int powers_ = 0;
  bool known_ = false, stepped_ = false;
  double last_j_ = 0, last_at_s_ = 0;
  double step_s_ = 0, before_step_s_ = 0;  ///< the readings that showed the last step, and before it
  double since_step_j_ = 0;                ///< of the power sensor
  Window window_;
  int windows_ = 0;
  bool refused_ = false;
  std::string wrong_;
};

}  // namespace perseus::client
