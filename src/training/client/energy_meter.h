// Energy of iterations and of their computations, from the counter's edges and from the times of the work.
//
// The energy at a moment inside an interval between two edges is the interval's energy, divided by the power model.
// Edges that a late reading leaves uncertain teach the model, but divide nothing: the interval goes on to the next
// exact edge, and waits for the model to know its powers. Both take 2.5 s at most; then a step whose begin or end is
// not known within 5 % of its energy has none. Throttled intervals, intervals at another clock and intervals with
// unknown work (evaluation) do not train the model. A step is returned once its interval is divided; flush() returns
// the rest without energy.
//
// Problem: computations are shorter than the counter's refresh, and their times are known only after a step has
//          ended.
// Input:   steps (spans of work, on the same clock as the edges), clocks and when they took effect, edges, and
//          moments at which the device was throttled or ran at another clock than requested.
// Output:  metered steps in order: energy between their begin and end, and since the end of the step before, so that
//          the energies of steps in a row add up to the counter's; per span an energy with standard deviation.
// Errors:  none; unknown energies are negative.
// Cost:    linear in spans; memory for everything after the last edge.
// Source:  docs/decisions/0017.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "planning/model/clock_timeline.h"
#include "training/client/counter_edges.h"
#include "training/client/power_model.h"

namespace perseus::client {

struct WorkSpan {
  int kind = 0;
  double from_s = 0, to_s = 0;
};

struct MeteredSpan {
  WorkSpan span;
  double energy_j = -1, stddev_j = 0;
};

struct MeteredStep {
  std::int64_t tag = 0;
  double energy_j = -1;
  std::optional<double> gap_j = {};  ///< from the end of the step before; nothing: not known
  bool throttled = false;
  std::vector<MeteredSpan> spans;
};

class EnergyMeter {
 public:
  /// `kinds` of work are 0 .. kinds-1; waiting inside of steps and the time between steps are two more.
  EnergyMeter(int kinds, int lowest_mhz, int highest_mhz);

  /// The client requested that clock then, and it takes effect `latency_s` later. Call in order of time.
  void clock(double at_s, int clock_mhz, double latency_s) {
    clocks_.request(Megahertz(clock_mhz), Seconds(at_s), Seconds(latency_s));
  }
  /// Of the last seconds and of all time that is not measured yet.
  [[nodiscard]] const model::ClockTimeline& clocks() const { return clocks_; }
  /// Spans in order, not overlapping; steps in order. `detailed`: with an energy for each span.
  void step(std::int64_t tag, double from_s, double to_s, std::vector<WorkSpan> spans, bool detailed = true);
  void edge(const CounterEdge& edge);
  /// Intervals with other powers are impossible: no energy comes of them.
  void possible_powers(double least_w, double most_w) {
    least_w_ = least_w;
    most_w_ = most_w;
  }
  [[nodiscard]] bool is_possible(const CounterEdge& from, const CounterEdge& to) const;
  /// The next edge begins an interval.
  void forget_edges();
  /// The device deviated from the request at some time between these: the samples in it do not count.
  void throttled(double from_s, double to_s);
  void other_clock(double from_s, double to_s);
  /// The work in this interval is not known: evaluation, or steps that were not recorded.
  void unknown(double from_s, double to_s);

  /// Metered steps since the last call.
  std::vector<MeteredStep> take();
  std::vector<MeteredStep> flush();

  [[nodiscard]] const PowerModel& model() const { return model_; }
  [[nodiscard]] int waiting() const { return kinds_; }
  [[nodiscard]] int between() const { return kinds_ + 1; }
  [[nodiscard]] std::int64_t intervals() const { return intervals_; }
  [[nodiscard]] std::int64_t intervals_throttled() const { return throttled_intervals_; }
  [[nodiscard]] std::int64_t intervals_rejected() const { return rejected_intervals_; }

 private:
  struct Stretch {
    double from_s, to_s;
  };
  struct Step {
    std::int64_t tag;
    double from_s, to_s;
    double begin_energy_j;
    std::optional<double> gap_j;
    bool has_begin, detailed;
    std::vector<WorkSpan> spans;
  };
  struct TimedPiece {
    double from_s, to_s;
    WorkPiece work;
  };
  struct Uncertainty {
    double powers = 0, edges = 0;
  };
  [[nodiscard]] std::vector<TimedPiece> pieces(double from_s, double to_s) const;
  void cut_at_clocks(double from_s, double to_s, int kind, std::vector<TimedPiece>& into) const;
  void learn(const CounterEdge& from, const CounterEdge& to);
  void close_interval();
  void divide_intervals(bool all);
  void divide(const CounterEdge& from, const CounterEdge& to, bool sure);
  [[nodiscard]] Uncertainty uncertainty(const CounterEdge& from, const CounterEdge& to);
  [[nodiscard]] double power_stddev_w(const WorkPiece& work);
  [[nodiscard]] double modelled_j(double at_s) const;
  void give_out_last_steps();
  void begin_at(Step& step, double energy_j) const;
  void end_at(Step& step, std::optional<double> energy_j);
  void forget(double before);
  [[nodiscard]] MeteredStep metered(const Step& step) const;
  static bool touches(const std::deque<Stretch>& stretches, double from_s, double to_s);

  int kinds_;
  PowerModel model_;
  double least_w_ = 0, most_w_ = 1e4;
  struct Interval {
    CounterEdge from, to;
  };
  std::deque<Interval> closed_;    ///< not divided yet
  std::deque<CounterEdge> edges_;  ///< the first ends the last closed interval
  std::size_t learned_ = 0;        ///< the model has learned up to this one
  struct PowerStddev {
    int kind, clock_mhz;
    int first;  ///< intervals of the model, when that power was first looked at
    double stddev_w = 0;
    int intervals = 0;  ///< the same, when the deviation was
  };
  std::vector<PowerStddev> stddevs_;
  std::deque<Step> steps_;  ///< not returned yet, or still covering future edges
  model::ClockTimeline clocks_;
  std::deque<Stretch> throttled_, other_clock_, unknown_;
  double known_until_s_ = 0;
  std::optional<double> last_end_j_;  ///< the counter at the end of the last metered step
  std::vector<MeteredStep> done_;
  std::int64_t intervals_ = 0, throttled_intervals_ = 0, rejected_intervals_ = 0;
};

}  // namespace perseus::client
