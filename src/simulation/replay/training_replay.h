// A training job as processes: launches the workers, sends them commands, and receives their reports of each
// iteration.
//
// However this object ends, its processes end: first by request, then by SIGKILL.
//
// Problem: see docs/demo.md.
// Input:   the pipeline, the number of replicas, the worker program and its arguments.
// Output:  iterations, each as the reports of all workers.
// Errors:  unavailable naming the worker that ended and how ("worker 3 (replica 0, rank 3) was killed by signal 9"),
//          and for no report within the limit; those of starting.
// Cost:    a process a rank.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "planning/model/computation_dag.h"
#include "simulation/replay/agreement.h"
#include "simulation/replay/child_process.h"
#include "simulation/replay/peer_links.h"
#include "simulation/replay/rank_report.h"

namespace perseus::replay {

struct ReplayOptions {
  std::string program;                 ///< perseus-replay
  std::vector<std::string> arguments;  ///< for all workers; place, links and GPU are added
  int replicas = 1;
  std::vector<std::string> gpus;  ///< per worker: state file
  std::string error_file;         ///< their standard error
  double report_limit_s = 60;     ///< longer than any iteration takes
  double silence_s = 5;           ///< time without a report after which `on_silence` names the silent workers
  std::function<void(const std::string&)> on_silence;  ///< called again after each further silence_s
  std::function<void(const RankReport&)> on_report;    ///< called on arrival of each report
  std::function<bool()> interrupted;                   ///< true: next_iteration() fails
};

struct JobIteration {
  std::int64_t iteration = 0;
  std::vector<RankReport> workers;
};

class TrainingReplay {
 public:
  static Result<std::unique_ptr<TrainingReplay>> launch(const model::ComputationDag& dag, ReplayOptions options);
  TrainingReplay(const TrainingReplay&) = delete;
  TrainingReplay& operator=(const TrainingReplay&) = delete;
  ~TrainingReplay();

  /// "client" or "stop", after the current iteration.
  Status command(const std::string& text);
  /// The next iteration that all workers have completed.
  Result<JobIteration> next_iteration();
  /// The same without waiting longer than for the next message; nullopt: not all workers have completed one.
  Result<std::optional<JobIteration>> poll(int limit_ms);
  /// The job's id, once worker 0 has registered it; "" before.
  [[nodiscard]] const std::string& job() const { return job_; }
  [[nodiscard]] bool job_notified() const { return job_notified_; }
  /// Receives messages of the workers; waits for the first at most that long. For callers that wait for another
  /// event.
  Status listen(int limit_ms);
  /// After the command "stop": waits until all have ended. An Error if one does not, or not in order.
  Status finish(double limit_s);
  [[nodiscard]] std::vector<pid_t> pids() const;

 private:
  TrainingReplay(ReplayOptions options, int ranks) : options_(std::move(options)), ranks_(ranks) {}
  Status start_workers(const model::ComputationDag& dag);
  std::optional<JobIteration> take_whole();
  /// Workers that are stopped (SIGSTOP), else those that have not reported the next iteration.
  [[nodiscard]] std::string silent_workers() const;
  /// Names the workers that ended without a command, and how they ended; ok if there are none.
  Status check_workers(double patience_s);

  ReplayOptions options_;
  int ranks_;
  std::vector<ChildProcess> workers_;
  std::unique_ptr<PeerLinks> links_;
  std::map<std::int64_t, JobIteration> iterations_;  ///< incomplete ones
  std::int64_t next_ = 0;
  double last_heard_s_ = 0;  ///< a report, or the last call of on_silence
  std::int32_t commands_ = 0;
  std::string job_;
  bool job_notified_ = false;
  bool stopping_ = false;  ///< workers may end, and some do before the last report of others has arrived
};

/// Exit code of a worker program that ended because another one had ended: not the cause.
inline constexpr int kExitPeerHasGone = 3;

}  // namespace perseus::replay
