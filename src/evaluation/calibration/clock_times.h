// Time of a computation at each clock, from traces in which clocks were not assigned at random.
//
// Problem: plans give the first microbatches other clocks than the rest, and the first backward of an iteration runs
//          1-5 % faster at any clock (measured). A clock that only a first microbatch ran at would look too fast.
// Method:  log time = effect of the clock + effect of the microbatch (of mean 0), a two-way table per (stage,
//          instruction), by alternating means until convergence. It interpolates a clock without measurements (time
//          linear in 1/clock between neighbors, the trend of the five nearest below the lowest, the highest clock's
//          time above).
// Input:   some plans of a valid RunTrace.
// Output:  per (stage, instruction) its clocks, ascending, each with time, spread of the samples around the table, and
//          number of samples.
// Cost:    O(computations * rounds).
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "planning/model/run_trace.h"

namespace perseus::calibration {

struct ClockTime {
  Megahertz clock;
  Seconds time;
  Seconds stddev;
  int samples = 0;
};

class ClockTimes {
 public:
  ClockTimes() = default;
  ClockTimes(const model::RunTrace& trace, std::span<const int> plans);

  [[nodiscard]] const std::vector<ClockTime>& measured(int stage, model::Instruction instruction) const;
  [[nodiscard]] Seconds at(int stage, model::Instruction instruction, Megahertz clock) const;

 private:
  std::map<std::pair<int, model::Instruction>, std::vector<ClockTime>> times_;
};

}  // namespace perseus::calibration
