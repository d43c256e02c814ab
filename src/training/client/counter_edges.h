// When to read an energy counter that moves in steps, so that the moments of its steps are known from few readings.
//
// Problem: a counter shows the energy as of its last refresh, 10 to 100 ms ago; only (moment of a refresh, value)
// pairs are exact. Reading it thousands of times a second costs time and is said to disturb it. Input: readings, each
// with the moments before and after the call (s, any monotonic clock), made at the times that next_read_s() names, or
// later. Output: edges with their uncertainty. At first it polls every millisecond to learn the period, mostly for
// seven refreshes; polls that a busy machine makes late are not learnt from. Then the next refresh is awaited within an
// interval that each reading narrows (before it, in its middle, after it), at most 50 readings a second; of a counter
// that refreshes more often than every 60 ms only some refreshes, each with one reading more, since what it moves from
// must be known. A reading that comes too late for that gives a wider edge or none, and the next refresh is awaited. A
// refresh outside of its interval widens those to come: devices that are not regular get honest, wider edges; a period
// that turns out wrong is learnt again. Errors: none; a counter that never moves gives no edges. Cost: a few operations
// a reading. Threads: one. Source: paper section 5 (Profiler), decision 0017.
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
  std::optional<CounterEdge> find(double before_s, double after_s, double energy_j, bool moved);
  std::optional<CounterEdge> follow(double before_s, double after_s, double energy_j, bool moved);
  std::optional<CounterEdge> late(double before_s, double after_s, double energy_j, bool moved);
  std::optional<CounterEdge> confirmed(double after_s, double energy_j);
  void seek(double after_s);
  void learn_again(double after_s);
  void expect_next(double after_s, bool known);
  void pass(double refreshes);
  void aim();
  [[nodiscard]] double margin_s(double refreshes) const;

  bool learning_ = true;
  double next_read_s_ = 0;
  double began_s_ = -1;
  double last_energy_j_ = 0;
  double unmoved_s_ = 0;  ///< before_s of the latest reading, which showed last_energy_j_
  double pace_s_ = 1e-3;  ///< between readings while it learns
  int readings_ = 0;      ///< close to the one before
  int moves_ = 0;
  double quiet_from_s_ = 0, quiet_s_ = 0;             ///< the latest move; the longest time without one
  double before_move_s_ = 0, most_period_s_ = 1e300;  ///< ... and the shortest with two
  std::deque<double> edges_s_;                        ///< the last ones, for the period

  double period_s_ = 0;
  double blind_period_s_ = 0;      ///< too short to await refreshes: edges lie somewhere in it
  int stride_ = 1;                 ///< every so many refreshes is looked for
  double low_s_ = 0, high_s_ = 0;  ///< the refresh looked for is between these
  double slack_s_ = 1e-4;          ///< how much less regular than that it may be
  double drift_s_ = 0;             ///< how wrong the period may be
  double late_s_ = 0;              ///< how much has been added to high_s_ in vain
  bool based_ = false;             ///< what was read last is the energy of the refresh before the one looked for
  int step_ = 0;                   ///< 0: before low_s_, 1: in the middle, 2: after high_s_
  bool seeking_ = false;           ///< lost: polls until it moves
  int losses_ = 0;                 ///< since a refresh came where it was expected
};

}  // namespace perseus::client
