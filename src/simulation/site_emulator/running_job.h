// One job of a site as it runs: iterations one after the other, each in the way that its ranks have been granted.
//
// Model:   a fall takes effect at the next computation that each rank begins once it has the grant; the iteration then
//          mixes two plans (simulation/site_emulator/switched_iteration.h). A raise takes effect with the next
//          iteration; a pause under way is shortened to that of the new way, so that the iteration draws no more on
//          average than was granted. All pipelines of a job run in step.
// Input:   a kind, a way that it runs in at first, and the part of an iteration that is over at 0 s.
// Output:  calls `sink` with runs of iterations in the order of time, without gaps; they stay valid during the call.
// Cost:    an iteration per fall.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "simulation/site_emulator/job_kind.h"
#include "simulation/site_emulator/power_trace.h"

namespace perseus::site_emulator {

class RunningJob {
 public:
  using Sink = std::function<void(const IterationRun&)>;
  RunningJob(JobKind& kind, int way, double part_over);

  /// Completes the iterations that end by then.
  void advance_to(Seconds time, const Sink& sink);
  /// Hands over the iteration that is under way.
  void finish(const Sink& sink) const;

  /// Advance to the time of the grant first. `from_s`: when each rank has it. Returns when the last rank follows it.
  Seconds fall_to(int way, const std::vector<double>& from_s);
  void raise_to(int way, Seconds from);

  [[nodiscard]] int granted() const { return raise_ ? raise_->way : plans_.back().way; }
  /// The granted way whose power is that of the ranks now: until a raise takes effect, the earlier one.
  [[nodiscard]] int followed() const { return plans_.back().way; }
  void forget_raise() { raise_.reset(); }
  /// Of one pipeline since 0 s, without bias.
  [[nodiscard]] Joules drawn(Seconds now) const;
  /// Seconds at full speed that its iterations since 0 s would take.
  [[nodiscard]] double work_s(Seconds now) const;

 private:
  struct Granted {
    int way;
    std::vector<double> from_s;  ///< per rank; empty: all have it since the iteration's beginning
  };
  struct Raise {
    int way;
    double from_s;
  };
  void run_iteration();
  void begin_next();
  [[nodiscard]] double end_s() const;

  JobKind* kind_;
  std::vector<Granted> plans_;  ///< of the iteration under way
  std::optional<Raise> raise_;
  double start_s_ = 0, makespan_s_ = 0, length_s_ = 0, all_follow_s_ = 0;
  double iterations_ = 0;
  double drawn_j_ = 0;  ///< before the iteration under way
  std::shared_ptr<const EnergyOverTime> energy_;
};

}  // namespace perseus::site_emulator
