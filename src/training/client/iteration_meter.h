// Combines recorded steps, clock changes and a GPU's energy counter into measured iterations.
//
// An iteration is returned when the counter's next edge has come, or after a while without energy. A *mixed*
// computation is one during which the clock changed: it began before its requested clock arrived. In a profiling
// window its time and energy, and the iteration's with them, are corrected to their values at that clock alone; where
// these are not known within 2 %, the computation's time and energy are 0: not known.
// Frameworks end a step before the rank has waited for the others and made its optimizer step. So the energy of an
// iteration outside of windows begins where the last step ended: under a plan and at the highest clock alike,
// iterations in a row add up to the counter's energy. Not counted are waits of a paced job, evaluation, and what
// exceeds the usual time between two steps (a checkpoint). An iteration at clocks that are neither its plan's nor the
// highest one has no energy.
//
// Problem: combine the records of the training thread, the times at which clocks took effect, the device's readings,
//          and the energy meter.
// Input:   steps as they end; look() whenever next_look_s() says.
// Output:  iterations in order, always with time, with energies where they are known (a computation's within 5 %);
//          facts for statistics.
// Errors:  Complaints (energy); a device without a counter gives iterations without energy, after the client has
//          checked whether it throttled.
// Cost:    see energy_meter; some 40 driver calls a second.
// Threads: one; facts() any.
// Source:  paper section 5 (Profiler).
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "training/client/complaints.h"
#include "training/client/counter_check.h"
#include "training/client/energy_meter.h"
#include "training/client/messages.h"
#include "training/client/speed_curve.h"
#include "training/client/step_recorder.h"
#include "training/device/clock_habit.h"
#include "training/device/gpu.h"

namespace perseus::client {

/// One kind of work at one clock, with error bars.
struct MeasuredPower {
  std::string work;  ///< an instruction's name, "blocking" or "between_steps"
  int chunk = 0;
  int clock_mhz = 0;
  PowerEstimate power;
  double time_s = 0;  ///< of one computation there, median of the last ones; 0: none
  int samples = 0;
};

struct EnergyFacts {
  bool known = false;
  double counter_period_s = 0;
  double total_j = 0;  ///< since the first edge
  double last_iteration_j = -1;
  PowerEstimate blocking;  ///< at the highest clock; 0: not known
  std::int64_t intervals = 0, throttled = 0, rejected = 0;
  std::int64_t mixed = 0, unsure = 0;  ///< computations; unsure: mixed, and not corrected
  std::int64_t late = 0;               ///< ... mixed for longer than the switch latency that plans assume
  std::vector<MeasuredPower> powers;
};

class IterationMeter {
 public:
  /// `gpu` may be null; only take() and look() use it. `with_energy`: its counter may be read. `clock`: time of steps
  /// and looks, s; default: the host's.
  IterationMeter(device::Gpu* gpu, bool with_energy, const std::vector<int>& clocks_mhz, int chunks,
                 Complaints& complaints, std::function<double()> clock = {});

  /// The helper set that clock on the device (CLOCK_MONOTONIC, s, begin of the call). Call in order of time, before
  /// take() of the steps that it affects.
  void clock_set(double at_s, int clock_mhz);
  /// Time from the begin of the device call until the clock takes effect, as far as it is known.
  void switch_latency(double seconds, double stddev_s) {
    switch_latency_s_ = seconds;
    switch_latency_stddev_s_ = stddev_s;
  }
  /// No clock is ever set: the device's limits are part of what is measured, not disturbances of a requested clock.
  void without_control() { sets_clocks_ = false; }
  void take(const Step& step, double now_s);
  [[nodiscard]] double next_look_s() const;
  void look(double now_s);
  /// Completed iterations; with `all` also those that still wait for their energy.
  std::vector<MeasuredIteration> measured(double now_s, bool all);
  [[nodiscard]] EnergyFacts facts() const;

 private:
  /// How a computation ran: its kind of work, its requested clock, and the clocks at which it ran.
  struct Ran {
    int kind, clock_mhz;
    std::vector<ClockedTime> pieces;
    bool mixed = false, late = false;
    bool unsure = false;  ///< mixed, and its time at its clock alone is not known
    double time_stddev_s = 0;
  };
  struct Pending {
    std::int64_t tag = 0;
    double end_s = 0;
    bool wanted = true;
    int window_iterations = 1;
    MeasuredIteration iteration;
    double begin_s = 0, last_s = 0, step_end_s = 0;  ///< the iteration's time ends before the step
    double gap_s = -1;                               ///< since the end of the step before; < 0: not known
    double paced_s = 0;                              ///< of these
    std::vector<Ran> ran;                            ///< per computation
    std::vector<std::size_t> computation_of_span;
    bool clean = true, followed = true, comparable = true, window_ends = false;  ///< as Step's
  };
  [[nodiscard]] int kind_of(const RecordedComputation& computation) const;
  [[nodiscard]] double next_energy_s() const { return std::max(edges_.next_read_s(), retry_s_); }
  /// Energies may come.
  [[nodiscard]] bool measures_energy() const { return gives_energy_ && !check_.refused() && !fails_long_; }
  void look_at_energy(double now_s);
  void look_at_power(double now_s);
  void look_at_limits(double now_s);
  void judge_counter(double now_s);
  void look_at_clock(double now_s);
  void forget_clocks(const Step& step);
  void check_clocks(double until_s);
  [[nodiscard]] Ran ran_at(const RecordedComputation& computation, int clock_mhz, double from_s, double to_s) const;
  Pending pending_of(const Step& step, double now_s);
  std::vector<WorkSpan> add_computations(const Step& step, Pending& pending);
  void settle_times(Pending& pending);
  void settle_energies(Pending& pending, const MeteredStep& step);
  [[nodiscard]] double energy_after_last(const Pending& pending, const MeteredStep& step) const;
  [[nodiscard]] double energy_before(const Pending& pending, const MeteredStep& step);
  void finish(const MeteredStep& step, std::vector<MeasuredIteration>& into);
  void count_in_window(Pending& pending);
  void publish();
  void publish_powers();

  device::Gpu* gpu_;
  int chunks_;
  bool clocks_known_;
  int highest_mhz_;  ///< any number where the clocks are not known
  Complaints& complaints_;
  std::function<double()> clock_;
  CounterEdges edges_;
  bool said_wide_edges_ = false;
  CounterCheck check_;
  EnergyMeter meter_;
  double switch_latency_s_ = 0, switch_latency_stddev_s_ = 0;
  std::vector<SpeedCurve> speeds_;  ///< by kind
  std::int64_t mixed_ = 0, unsure_ = 0, late_ = 0;
  std::int64_t next_tag_ = 0;
  std::deque<Pending> pending_;
  int window_ = -1, window_left_ = 0;  ///< iterations that may still be used
  int window_ran_ = 0;
  std::int64_t last_iteration_ = -1;
  double last_end_s_ = 0;
  bool last_trained_ = false;
  std::array<std::vector<double>, 2> gaps_s_;  ///< the last few times between steps; at the highest clock, under plans
  struct SeenClock {
    double at_s;
    Megahertz clock;
    bool throttled;  ///< the driver gives a reason
  };
  std::deque<SeenClock> seen_;  ///< clocks read from the device
  device::ClockHabit habit_;
  bool sets_clocks_ = true;
  std::optional<double> controlled_from_s_;  ///< when the helper's first clock took effect; none: the driver chooses
                                             ///< the clocks
  double looked_s_ = 0, next_events_s_ = 0, retry_s_ = 0;
  int failures_ = 0;
  double failing_since_s_ = 0;
  bool fails_long_ = false;
  bool gives_energy_, gives_events_;
  bool gives_power_ = true;
  double next_limits_s_ = 0;
  std::optional<CounterEdge> last_edge_;
  double total_j_ = 0;  ///< since the first edge, without impossible intervals
  double last_iteration_j_ = -1;
  double next_powers_s_ = 0;
  struct Seen {
    int kind, clock_mhz;
    std::vector<double> times_s;  ///< the last few
    int samples;
  };
  std::vector<Seen> seen_work_;
  mutable std::mutex mutex_;
  EnergyFacts facts_;
};

}  // namespace perseus::client
