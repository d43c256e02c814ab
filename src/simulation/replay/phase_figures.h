// Figures of the iterations of one phase of a training replay: time and energy.
//
// Input:   consecutive iterations as the workers reported them, at least one.
// Output:  medians over the iterations (a machine that was briefly busy with other work distorts one iteration, not
//          the figure), energies of the whole job and of each replica; the iteration whose time is the median. Units:
//          s, J, per iteration.
// Cost:    O(reports).
#pragma once

#include <vector>

#include "simulation/replay/training_replay.h"

namespace perseus::replay {

struct PhaseFigures {
  int iterations = 0;
  int left_out = 0;  ///< between the first and the last: excluded from these figures
  double time_s = 0;
  double shortest_s = 0, longest_s = 0;
  double energy_j = 0;                   ///< exact, from the simulation, all GPUs
  std::vector<double> replica_time_s;    ///< until its own last computation was done
  std::vector<double> replica_energy_j;  ///< including waiting for the slowest replica
  double late_ms = 0;                    ///< mean, of a worker in an iteration: compensated
  double lost_ms = 0;                    ///< mean, likewise: not compensated
  JobIteration typical;
};

PhaseFigures figures_of(const std::vector<JobIteration>& iterations, int replicas);

/// 100 * (1 - part / whole); 0 if `whole` is 0.
double saving_pct(double part, double whole);

/// Processor time of the client's threads and helpers between two iterations, in % of the wall time of all workers.
double client_cpu_pct(const JobIteration& first, const JobIteration& last);

}  // namespace perseus::replay
