// Runs a plan: a simulation of one iteration.
//
// Problem: compute the makespan and energy of a plan without the planner's longest paths: ranks run their orders, each
//          as far as messages, which take their latency, let it; its clock is its own, so that no other order matters.
// Input:   a valid ComputationDag and a plan that fits it (see plan_fits).
// Output:  PlanRun, unique.
// Errors:  none; a plan that does not fit, or a deadlock of ranks, is a programming error and aborts.
// Cost:    O(computations + dependencies), nothing is allocated after the first run without switch latency.
// Threads: one PlanRunner per thread; it keeps a reference to its DAG.
// Source:  paper section 4.1, eq. (1).
//
// Clocks that arrive late (switch_latency > 0). A computation whose option has clock 0 is not clock-controlled: it
// runs as measured and neither needs nor causes a change. On every rank, when a clock-controlled computation ends and
// the next clock-controlled one needs another clock than the one last requested, the rank requests that clock at once;
// it arrives switch_latency later. A rank's GPU makes one change at a time: a request during a change waits until that
// change is done and then takes its own latency; a newer request replaces a waiting one. Until then the rank stays at
// its old clock f: a computation of type k that runs there progresses at 1/t of k's option at f, and its energy is that
// of this option, per part of the work done. If k was not measured at f, the option is that of the highest measured
// clock below f, or the lowest clock of all. The iteration repeats: a rank requests the first clock of the next
// iteration when the last clock-controlled computation of this one ends, and the next iteration starts when all ranks
// are done. The result is the second of two iterations; the first starts with all clocks right.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/checker/clock_line.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::checker {

struct PlanRunOptions {
  Seconds switch_latency;  ///< >= 0; 0: clocks change at once
};

struct PlanRun {
  Seconds makespan;
  Joules computing_energy;     ///< sum of e
  Joules effective_energy;     ///< sum of e - P t
  Joules energy;               ///< eq. (1) at T' = makespan: computation and waiting
  std::vector<Seconds> busy;   ///< per rank: time spent computing
  std::vector<Seconds> start;  ///< per computation, from the iteration's start
  std::vector<Seconds> end;
  std::vector<Joules> energy_of;  ///< per computation; their sum is computing_energy
};

/// Ok if the plan has one existing option for every computation; an Error names the first violation.
Status plan_fits(const model::ComputationDag& dag, const model::Plan& plan);

class PlanRunner {
 public:
  explicit PlanRunner(const model::ComputationDag& dag);
  /// Valid until the next run.
  const PlanRun& run(const model::Plan& plan, const PlanRunOptions& options = {});

 private:
  struct Receiver {
    int computation;
    double latency;
  };

  /// One iteration; returns its makespan. `run(computation, start)` returns how it runs;
  /// `ended(computation, position in its rank's order, end)` is called in the order of its rank.
  template <class Run, class Ended>
  double iterate(Run run, Ended ended);
  double run_on_time(const model::Plan& plan);
  double run_late(const model::Plan& plan, Seconds switch_latency);

  const model::ComputationDag& dag_;
  std::vector<int> first_receiver_;  ///< receivers of computation i are [first_receiver_[i], first_receiver_[i + 1])
  std::vector<Receiver> receivers_;
  std::vector<int> messages_needed_;
  std::vector<ClockLine::Run> options_;  ///< of each type, together
  std::vector<int> first_option_;        ///< per computation

  std::vector<int> may_run_;  ///< ranks; some are in vain
  std::vector<int> messages_missing_;
  std::vector<double> arrived_;             ///< per computation: its last message so far
  std::vector<std::size_t> next_in_order_;  ///< per rank
  std::vector<ClockLine::Run> runs_;        ///< per computation
  PlanRun result_;
};

/// One run of a new PlanRunner.
PlanRun run_plan(const model::ComputationDag& dag, const model::Plan& plan, const PlanRunOptions& options = {});

}  // namespace perseus::checker
