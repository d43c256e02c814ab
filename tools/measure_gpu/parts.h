// The parts of the measurement; each adds its figures.
//
// Errors:  a part throws what stops it (std::exception); the other parts still run.
// Cost:    together about three minutes; with Settings::quick some seconds.
// Threads: one at a time; a part may start threads and processes of its own and ends them.
#pragma once

#include <string>

#include "cuda.h"
#include "figures.h"

namespace perseus::measure {

struct Settings {
  bool quick = false;   ///< few samples, to see that everything runs
  std::string program;  ///< path of this program, for processes that it starts
  /// Number of samples or seconds.
  [[nodiscard]] int of(int full, int quickly) const { return quick ? quickly : full; }
};

struct Bench {
  const Cuda& cuda;
  const Settings& settings;
  Figures& figures;
};

void measure_host_cost(Bench& bench);
void measure_boundary_cost(Bench& bench);
void measure_visibility(Bench& bench);
void measure_order(Bench& bench);
void measure_queue_depth(Bench& bench);
void measure_timers(Bench& bench);
void measure_helper(Bench& bench);
void measure_graphs(Bench& bench);
void measure_nvml(Bench& bench);

}  // namespace perseus::measure
