// One iteration as a DAG of computations, each with a choice of clocks: the input of every planner.
//
// Shape:   `types` are the distinct (stage, instruction) pairs with their options; `computations` are their
//          occurrences; `dependencies` are all precedence edges, those along a rank's execution order included;
//          `rank_order[r]` lists the computations of rank r in execution order. Computations are numbered in a
//          topological order, so that every dependency has before < after. At most one computation runs on a rank at a
//          time.
// Units:   options are of one rank (all its accelerators together). Energy of an iteration of duration T, paper eq.
//          (1):
//              sum_i e_i + sum_r blocking_power * accelerators[r] * (T - sum_{i on r} t_i)
//          Hence the *effective* energy of an option is e - blocking_power * accelerators[rank] * t.
// Errors:  validate() names the index and the rule that it breaks.
// Cost:    O(computations + dependencies).
// Threads: plain value.
// Source:  paper sections 4.1 and 4.4.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/profile.h"
#include "planning/model/schedule.h"
#include "planning/model/transfer_latency.h"

namespace perseus::model {

struct ComputationType {
  int stage = 0;                     ///< -1 in a generic DAG without stages
  std::string instruction;           ///< an Instruction's name, or any name in a generic DAG
  std::vector<Measurement> options;  ///< at least one; as measured, highest clock first
};

struct Computation {
  int type = 0;
  int rank = 0;
  int microbatch = -1;  ///< -1: once per iteration, or a generic DAG
};

struct Dependency {
  int before = 0;
  int after = 0;
  Seconds latency;  ///< transfer time: `after` starts no earlier than end of `before` + latency
};

struct ComputationDag {
  std::vector<ComputationType> types;
  std::vector<Computation> computations;
  std::vector<Dependency> dependencies;
  std::vector<std::vector<int>> rank_order;
  std::vector<int> accelerators;  ///< per rank
  Watts blocking_power;           ///< of one accelerator while it waits

  [[nodiscard]] int num_ranks() const { return static_cast<int>(rank_order.size()); }
  [[nodiscard]] const ComputationType& type_of(int computation) const { return types[computations[computation].type]; }
  /// Blocking power of all accelerators of that computation's rank.
  [[nodiscard]] Watts blocking_power_of(int computation) const {
    return blocking_power * accelerators[computations[computation].rank];
  }
  /// Blocking power of the whole pipeline: the cost of one more second of iteration in which no rank computes.
  [[nodiscard]] Watts total_blocking_power() const;
  [[nodiscard]] Status validate() const;
};

}  // namespace perseus::model
