// Measurements of a training job that ran under several frequency plans: the input of calibration.
//
// Shape:   one TracedPlan per frequency plan, ordered by id, ids unique; stages[s] is the execution order of stage s,
//          the same instructions and microbatches in every plan, one stage per rank.
// Units:   s, J, MHz; times are means over the plan's iterations, energies those of the stage's accelerators over a
//          whole iteration.
// Errors:  validate() names plan, stage, position, value, and the expected value.
// Threads: plain value.
// Source:  paper section 6.1 (testbed measurements).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/instruction.h"
#include "planning/model/schedule.h"

namespace perseus::model {

struct TracedComputation {
  Instruction instruction = Instruction::forward;
  int microbatch = 0;
  Megahertz clock;  ///< as requested
  Seconds time;     ///< > 0
};

struct TracedPlan {
  int id = 0;
  std::string kind;                                    ///< a label of the data set: "perseus", "envpipe", ...
  std::vector<std::vector<TracedComputation>> stages;  ///< per stage, in execution order
  Seconds iteration_time;                              ///< of the whole pipeline
  std::vector<Joules> energy;                          ///< per stage, of one iteration
  std::vector<Seconds> loading;                        ///< per stage: batch loading in one iteration, 0 if unknown
  int iterations = 1;                                  ///< number of averaged iterations

  [[nodiscard]] Joules total_energy() const;
};

struct RunTrace {
  std::vector<TracedPlan> plans;

  [[nodiscard]] int num_stages() const { return static_cast<int>(plans.front().stages.size()); }
  /// The execution order of all plans. Requires validate().
  [[nodiscard]] Schedule schedule() const;
  [[nodiscard]] Status validate() const;
};

}  // namespace perseus::model
