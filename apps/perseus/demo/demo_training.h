// The training job of `perseus demo`: the workers as processes, their iterations, and what runs in each.
//
// Input:   the job, its GPUs and its server.
// Output:  iterations, also only those that ran one plan from beginning to end.
// Errors:  unavailable naming the process that ended or is stopped (server, worker, helper), or that no plan is in
//          force; the interrupt.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "demo/demo_gpus.h"
#include "demo/demo_job.h"
#include "demo/demo_programs.h"
#include "demo/demo_scratch.h"
#include "demo/demo_server.h"
#include "demo/demo_stage.h"
#include "simulation/replay/training_replay.h"

namespace perseus::cli {

struct PlanIterations {
  std::vector<replay::JobIteration> iterations;
  int left_out = 0;  ///< between the first and the last: did not run the plan
};

class DemoTraining {
 public:
  DemoTraining(const DemoOptions& options, const DemoJob& job, const DemoScratch& scratch, DemoStage& stage,
               DemoServer& server, DemoGpus& gpus)
      : o_(options), job_(job), scratch_(scratch), stage_(stage), server_(server), gpus_(gpus) {}

  Status start(const DemoPrograms& programs);
  /// The clients start, and the job registers with the server.
  Status join_server();
  /// The workers end in order; their last reports.
  Result<replay::JobIteration> end();
  /// Ends all processes, however the demo ended.
  void tidy();
  /// Ends them by SIGKILL.
  void kill();

  [[nodiscard]] int ranks() const { return job_.dag.num_ranks(); }
  [[nodiscard]] int workers() const { return ranks() * o_.replicas; }
  /// Path of the job in the server's API.
  [[nodiscard]] std::string job_path() const { return "/v1/jobs/" + replay_->job(); }
  /// When the job had registered, on the stage's clock.
  [[nodiscard]] double joined_s() const { return joined_s_; }
  [[nodiscard]] std::string end_of_log() const;

  Result<replay::JobIteration> next();
  // For several jobs at once: none of these waits.
  Status start_client() { return replay_->command("client"); }
  /// The job has registered with the server, or could not: job_path() ends in an empty id.
  [[nodiscard]] bool registered() const { return replay_->job_notified(); }
  /// The next iteration, if all workers have completed it. It does not look at the server and the helpers.
  Result<std::optional<replay::JobIteration>> poll(int limit_ms);
  /// Passes over the iterations that have ended: while this process does not run, reports wait for it.
  Status skip_ended();
  /// Iterations, without the first `unmeasured` ones.
  Result<std::vector<replay::JobIteration>> measure(int unmeasured, int measured);
  /// Iterations that ran one plan from beginning to end. Others are skipped: those of a trial, in which a client
  /// compares the plan with the highest clock. If another plan comes, the measurement starts again.
  Result<PlanIterations> measure_plan(int unmeasured, int measured);
  /// All workers run one plan, and all of this iteration ran it; `except`: not that version.
  bool follows_plan(const replay::JobIteration& iteration, std::int64_t except, int without_replica = -1);
  /// Version of the plan that the workers last ran.
  [[nodiscard]] std::int64_t version() const { return version_; }

 private:
  replay::ReplayOptions replay_options(const DemoPrograms& programs, const std::string& csv);
  [[nodiscard]] std::vector<std::string> worker_arguments(const DemoPrograms& programs, const std::string& csv) const;
  /// Another one for each job of the demo.
  [[nodiscard]] std::string profile_name() const;
  Status push_profile();
  /// The plan version that all of this iteration ran on all workers; 0: none. A client that holds its clock at the
  /// highest one reports that from some moment within an iteration on, so the iteration before counts too.
  [[nodiscard]] std::int64_t plan_version(const replay::JobIteration& iteration) const;
  Error no_plan_in_force();
  /// Without the server or without a helper, no plan would be in force during the measurement.
  Status check_processes(const replay::JobIteration& iteration);
  Status check_helpers();
  /// A stopped helper cannot give its clock back.
  void continue_stopped() const;
  void show_client_log(const replay::RankReport& report);
  [[nodiscard]] std::string worker_name(int worker) const;

  const DemoOptions& o_;
  const DemoJob& job_;
  const DemoScratch& scratch_;
  DemoStage& stage_;
  DemoServer& server_;
  DemoGpus& gpus_;
  std::unique_ptr<replay::TrainingReplay> replay_;
  replay::JobIteration latest_, previous_;  ///< of those that next() returned
  std::set<pid_t> helpers_stopped_;         ///< as of the report of the last iteration
  std::int64_t version_ = 0;
  double joined_s_ = 0;
};

}  // namespace perseus::cli
