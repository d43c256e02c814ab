// A worker process of a training replay: iterations until it is told to stop.
//
// Problem: one rank of one replica runs its computations, agrees with the others on the end of each iteration, reports
// to the launcher, and has the Perseus client in it from the moment the launcher wants it. Input: its place and script,
// links to its peers and the launcher, its device, its client. Output: an ok Status when it was told to stop. Errors:
// those of run_iteration() and agree(). What the first worker is told ("run", "client", "stop"), all do after the same
// iteration. Cost: that of the training. Threads: one. Source: paper section 5.
#pragma once

#include <string>

#include "base/result.h"
#include "simulation/replay/agreement.h"
#include "simulation/replay/iteration.h"
#include "simulation/replay/rank_report.h"

namespace perseus::replay {

inline constexpr int launcher = -1;  ///< as a peer

class WorkerClient : public TrainingHooks {
 public:
  /// Joins that job; an empty one: registers it. Returns its id.
  virtual std::string start(const std::string& /*job*/) { return {}; }
  virtual void step_begin() {}
  virtual void step_end() {}
  virtual ClientFigures figures() { return {}; }
  /// Lines that it logged since the last call.
  virtual std::string take_log() { return {}; }
  /// The iteration under way will not end: a peer has gone, say. Called from any thread, before the stream is aborted.
  virtual void training_failed() {}
};

struct WorkerOptions {
  WorkerPlace place;
  std::size_t payload_bytes = 4096;
};

Status run_worker(const WorkerOptions& options, const RankScript& script, PeerLinks& links, ReplayDevice& device,
                  WorkerClient& client);

}  // namespace perseus::replay
