// A worker process of a training replay: runs iterations until the command to stop.
//
// Problem: one rank of one replica runs its computations, agrees with the others on the end of each iteration,
//          reports to the launcher, and contains the Perseus client from the launcher's command on.
// Input:   its place and script, links to its peers and the launcher, its device, its client.
// Output:  an ok Status after the command to stop. All workers follow a command to the first worker ("run", "client",
//          "stop") after the same iteration.
// Errors:  those of run_iteration() and agree().
// Cost:    that of the training.
// Source:  paper section 5.
#pragma once

#include <string>

#include "base/result.h"
#include "simulation/replay/agreement.h"
#include "simulation/replay/iteration.h"
#include "simulation/replay/rank_report.h"

namespace perseus::replay {

inline constexpr int kLauncher = -1;  ///< the launcher's peer number

class WorkerClient : public TrainingHooks {
 public:
  /// Joins that job; an empty one: registers a new job. Returns its id.
  virtual std::string start(const std::string& /*job*/) { return {}; }
  virtual void step_begin() {}
  virtual void step_end() {}
  virtual ClientFigures figures() { return {}; }
  /// Lines logged since the last call.
  virtual std::string take_log() { return {}; }
  /// The current iteration will not end, for example because a peer has gone. Called from any thread, before the
  /// stream is aborted.
  virtual void training_failed() {}
};

struct WorkerOptions {
  WorkerPlace place;
  std::size_t payload_bytes = 4096;
};

Status run_worker(const WorkerOptions& options, const RankScript& script, PeerLinks& links, ReplayDevice& device,
                  WorkerClient& client);

}  // namespace perseus::replay
