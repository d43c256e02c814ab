// The end of an iteration: gradients are summed over the replicas, and all workers agree when the next one starts.
//
// Each stage's gradients go to its worker of replica 0, and from there to worker 0; the response returns the same
// way.
//
// Problem: data-parallel replicas synchronize their gradients, stage by stage, and the optimizer's global gradient
//          norm needs all of them: no worker starts the next iteration before all are done.
// Input:   per worker the time when its device was done; its share of the gradient.
// Output:  the same for all: the latest of these times, and the first worker's decision about the next iteration.
// Errors:  those of the links.
// Cost:    two messages a worker.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulation/replay/peer_links.h"

namespace perseus::replay {

/// Place of a worker. Workers count from 0, replica by replica: worker = replica * ranks + rank.
struct WorkerPlace {
  int replicas = 1;
  int ranks = 1;
  int replica = 0;
  int rank = 0;
  [[nodiscard]] int worker() const { return replica * ranks + rank; }
  [[nodiscard]] int workers() const { return replicas * ranks; }
};

/// The workers from which a worker receives, and the one to which it sends, at the end of an iteration; -1: it is the
/// first worker.
std::vector<int> agreement_children(const WorkerPlace& place);
int agreement_parent(const WorkerPlace& place);

struct Agreement {
  double time_s = 0;
  std::string next;  ///< what the first worker decided
};

/// Calls `decide` in worker 0, when all have arrived. Iterations are numbered upwards, each used once.
Result<Agreement> agree(const WorkerPlace& place, std::int64_t iteration, double done_s, std::size_t gradient_bytes,
                        PeerLinks& links, const std::function<std::string()>& decide);

}  // namespace perseus::replay
