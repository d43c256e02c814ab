// The work of one rank of a pipeline in one iteration: the computation DAG as that rank sees it.
//
// Problem: a worker process runs its own computations only, but must know for each the ranks that it waits for and
//          the ranks that wait for it.
// Input:   a valid ComputationDag, a rank.
// Output:  its computations in execution order, each with the dependencies that come from other ranks (messages to
//          receive), those that go there (messages to send), and those within the rank that have a latency
//          (synchronous sends).
// Cost:    O(DAG).
// Source:  paper section 4.1.
#pragma once

#include <vector>

#include "base/units.h"
#include "planning/model/computation_dag.h"

namespace perseus::replay {

struct Awaited {
  int dependency = 0;   ///< index into ComputationDag::dependencies: names the message
  int rank = 0;         ///< the sender; the own rank: no message, the latency alone
  int computation = 0;  ///< `before` of the dependency
  Seconds latency;
};

struct Promised {
  int dependency = 0;
  int rank = 0;  ///< the receiver
};

struct ScriptStep {
  int computation = 0;  ///< index into ComputationDag::computations
  int type = 0;         ///< index into ComputationDag::types
  int microbatch = -1;
  int chunk = 0;  ///< its stage, counted among those of this rank
  std::vector<Awaited> awaits;
  std::vector<Promised> sends;
};

struct RankScript {
  int rank = 0;
  std::vector<ScriptStep> steps;
  std::vector<int> peers;  ///< other ranks that messages come from or go to, ascending
};

RankScript script_of(const model::ComputationDag& dag, int rank);

}  // namespace perseus::replay
