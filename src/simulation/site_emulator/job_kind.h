// One pipeline of a kind of job, and the ways in which it can run.
//
// A way is a plan, and a pause of all ranks after each iteration (pacing). Its power over an iteration, its period and
// its window swings are computed once, when they are first needed.
//
// Input:   a valid DAG; plans that fit it.
// Output:  a number for each different way: equal ways have equal numbers.
// Cost:    an iteration per way.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/site/window_guard.h"
#include "simulation/site_emulator/power_trace.h"
#include "simulation/site_emulator/switched_iteration.h"

namespace perseus::site_emulator {

class JobKind {
 public:
  /// `full_speed`: the time of an iteration at rate 1.
  JobKind(const model::ComputationDag& dag, Seconds full_speed);

  int way(const model::Plan& plan, Seconds pause = {});
  /// The plan with a pause such that the rate is this one; rate 0: it waits for ever after its iteration.
  int paced_way(const model::Plan& plan, double rate);

  [[nodiscard]] const model::Plan& plan(int way) const { return *ways_[way].plan; }
  [[nodiscard]] double pause_s(int way) const { return ways_[way].pause_s; }
  /// Of an iteration that repeats. A way at rate 0 has that of its plan without the pause.
  std::shared_ptr<const EnergyOverTime> steady(int way);
  Watts mean(int way);
  double rate(int way);
  const site::WindowSwing& swing(int way, Seconds window);

  IterationRunner& runner() { return runner_; }
  [[nodiscard]] const model::ComputationDag& dag() const { return dag_; }
  [[nodiscard]] Watts waiting() const { return waiting_; }
  [[nodiscard]] Seconds full_speed() const { return full_speed_; }
  [[nodiscard]] Megahertz highest_clock() const { return highest_clock_; }
  /// The longest computation under that way's plan: no rank takes its next clock later.
  Seconds longest_computation(int way);

 private:
  struct Way {
    const model::Plan* plan;
    double pause_s;
    std::shared_ptr<const EnergyOverTime> steady{};
    std::map<double, site::WindowSwing> swings{};
  };
  const model::ComputationDag& dag_;
  Seconds full_speed_;
  Watts waiting_;
  Megahertz highest_clock_;
  IterationRunner runner_;
  std::map<model::Plan, std::map<double, int>> known_;  ///< by plan and pause
  std::deque<Way> ways_;
};

}  // namespace perseus::site_emulator
