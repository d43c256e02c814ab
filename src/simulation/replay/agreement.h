// The end of an iteration: gradients are summed over the replicas, and all workers agree when the next one starts.
//
// Problem: data-parallel replicas synchronise their gradients, stage by stage, and the optimizer's global gradient norm
// needs all of them: nobody starts the next iteration before all are done. Input: per worker when its device was done;
// its share of the gradient. Output: for all the same: the latest of these times, and what the first worker decides
// (what comes next). Each stage's gradients go to its worker of replica 0, theirs to worker 0; the answer comes back
// the same way. Errors: those of the links. Cost: two messages a worker. Threads: one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulation/replay/peer_links.h"

namespace perseus::replay {

/// Where a worker is. Workers count from 0, replica by replica: worker = replica * ranks + rank.
struct WorkerPlace {
  int replicas = 1;
  int ranks = 1;
  int replica = 0;
  int rank = 0;
  [[nodiscard]] int worker() const { return replica * ranks + rank; }
  [[nodiscard]] int workers() const { return replicas * ranks; }
};

/// Whom a worker hears from and whom it tells, at the end of an iteration; -1: it is the first worker.
std::vector<int> agreement_children(const WorkerPlace& place);
int agreement_parent(const WorkerPlace& place);

struct Agreement {
  double time_s = 0;
  std::string next;  ///< what the first worker decided
};

/// `decide` is called in worker 0, when all have arrived. Iterations are numbered upwards, each used once.
Result<Agreement> agree(const WorkerPlace& place, std::int64_t iteration, double done_s, std::size_t gradient_bytes,
                        PeerLinks& links, const std::function<std::string()>& decide);

}  // namespace perseus::replay
