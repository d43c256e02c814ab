// Decides when to read an energy counter that moves in steps, to find the moments of its steps with few readings.
//
// At first it polls every millisecond to learn the period, usually for seven refreshes; it does not learn from polls
// that a busy machine delays. Then it searches for the next refresh within an interval that each reading narrows
// (before it, in its middle, after it), with at most 50 readings a second. For a counter that refreshes more often
// than every 60 ms it searches for only some refreshes, each with one more reading, since the value before the step
// must be known. A reading that comes too late gives a wider edge or none, and the search continues with the next
// refresh. A refresh outside of its interval widens later intervals: irregular devices get honest, wider edges. A
// period that proves wrong is learned again.
//
// Polls end: where the counter stands still, its refreshes follow no period or its calls take milliseconds, 3000
// readings are used up, those of a few seconds. Then it takes 40 readings a second as they are, and learns again after
// 2.5 minutes, so that readings stay at 60 a second in the mean.
//
// Problem: a counter shows the energy as of its last refresh, 10 to 100 ms ago; only (moment of a refresh, value)
//          pairs are exact. Reading it thousands of times a second costs time and reportedly disturbs the counter.
// Input:   readings, each with the moments before and after the call (s, any monotonic clock), at the times that
//          next_read_s() returns, or later.
// Output:  edges with their uncertainty.
// Errors:  none; a counter that never moves gives no edges.
// Cost:    a few operations a reading; in any t seconds at most kReadingsAtOnce + kMostReadings_hz * t readings.
// Source:  paper section 5 (Profiler); docs/decisions/0017.
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
  static constexpr double kReadingsAtOnce = 3000, kMostReadings_hz = 60;

  [[nodiscard]] double next_read_s() const { return next_read_s_; }
  std::optional<CounterEdge> read(double before_s, double after_s, double energy_j);
  /// 0: not known yet, or the counter moves with every reading.
  [[nodiscard]] double period_s() const { return period_s_; }
  [[nodiscard]] bool learning() const { return learning_; }
  /// The period could not be learned, or refreshes do not keep it: edges are as wide as readings are apart.
  [[nodiscard]] bool resting() const { return resting_; }

 private:
  std::optional<CounterEdge> learn(double before_s, double after_s, double energy_j, bool moved);
  std::optional<CounterEdge> rest(double before_s, double after_s, double energy_j, bool moved);
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

  bool learning_ = true, resting_ = false;
  double spare_ = kReadingsAtOnce;  ///< readings
  double next_read_s_ = 0;
  double began_s_ = -1;
  double last_energy_j_ = 0;
  double unmoved_s_ = 0;  ///< before_s of the latest reading, which showed last_energy_j_
  double pace_s_ = 1e-3;  ///< between readings while learning
  int readings_ = 0;      ///< close to the previous one
  int moves_ = 0;
  double last_move_s_ = 0;
  double quiet_from_s_ = 0, quiet_s_ = 0;             ///< the latest move; the longest time without one
  double before_move_s_ = 0, most_period_s_ = 1e300;  ///< ... and the shortest with two
  std::deque<double> edges_s_;                        ///< the last ones, to compute the period

  double period_s_ = 0;
  double blind_period_s_ = 0;      ///< period too short to search for refreshes: edges lie anywhere in it
  int stride_ = 1;                 ///< searches for one refresh in this many
  double low_s_ = 0, high_s_ = 0;  ///< the searched refresh is between these
  double slack_s_ = 1e-4;          ///< additional irregularity allowed
  double drift_s_ = 0;             ///< possible error of the period
  double late_s_ = 0;              ///< total added to high_s_ without finding the refresh
  bool based_ = false;             ///< the latest reading is the energy of the refresh before the searched one
  int step_ = 0;                   ///< 0: before low_s_, 1: in the middle, 2: after high_s_
  bool seeking_ = false;           ///< refresh lost: polls until the counter moves
  int losses_ = 0;                 ///< since the last refresh that came where expected
};

}  // namespace perseus::client
