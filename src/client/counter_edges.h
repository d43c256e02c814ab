// When to read an energy counter that moves in steps, so that the moments of its steps are known from few readings.
//
// Problem: a counter shows the energy as of its last refresh, 10 to 100 ms ago; only (moment of a refresh, value)
// pairs are exact. Reading it thousands of times a second costs time and is said to disturb it. Input: readings, each
// with the moments before and after the call (s, any monotonic clock), made at the times that next_read_s() names, or
// later. Output: edges with their uncertainty. At first it polls every millisecond, for 2 s at most, to learn the
// period; then the next refresh is awaited within an interval that each reading narrows (before it, in its middle,
// after it), at most 50 readings a second. A refresh outside of its interval widens those to come: devices that are
// not regular get honest, wider edges. Errors: none; a counter that never moves gives no edges. Cost: a few operations
// a reading. Threads: one. Source: paper section 5 (Profiler).
#pragma once

#include <deque>
#include <optional>

namespace perseus::client {

struct CounterEdge {
  double at_s = 0;
  double stddev_s = 0;
  double energy_j = 0;
};

class CounterEdges {
 public:
  [[nodiscard]] double next_read_s() const { return next_read_s_; }
  std::optional<CounterEdge> read(double before_s, double after_s, double energy_j);
  /// 0: not known yet, or it moves with every reading.
  [[nodiscard]] double period_s() const { return period_s_; }
  [[nodiscard]] bool learning() const { return learning_; }

 private:
  std::optional<CounterEdge> learn(double before_s, double after_s, double energy_j, bool moved);
  std::optional<CounterEdge> follow(double before_s, double after_s, double energy_j, bool moved);
  void seek();
  void aim();
  void expect_next();

  bool learning_ = true;
  double next_read_s_ = 0;
  double began_s_ = -1;
  double last_energy_j_ = 0;
  double unmoved_s_ = 0;  ///< before_s of the latest reading that showed last_energy_j_
  int readings_ = 0, moves_ = 0;
  std::deque<double> edges_s_;  ///< the last ones, for the period

  double period_s_ = 0;
  int stride_ = 1;                 ///< every so many refreshes is looked for
  double low_s_ = 0, high_s_ = 0;  ///< the refresh looked for is between these
  double slack_s_ = 1e-4;          ///< how much less regular than that it may be
  double late_s_ = 0;              ///< how much has been added to high_s_ in vain
  int step_ = 0;                   ///< 0: before low_s_, 1: in the middle, 2: after high_s_
  bool seeking_ = false;           ///< lost: polls until it moves
};

}  // namespace perseus::client
