// Scenarios of the server as text files: tests/server/scenario/*.txt, one test each.
//
// Problem: the server's behavior over hours (stragglers, expiry, restarts) must be tested in milliseconds.
// Input:   a text, one step per line, `#` starts a comment; README.md in this folder lists the steps. A Target runs
//          the steps: the service itself on a hand-turned clock, or a client of a real server.
// Output:  nothing, or the first step with an unexpected outcome: "file:line: expected, actual".
// Cost:    that of the steps.
// Threads: one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/jobs/requests.h"

namespace perseus::testing {

/// The system under test of a scenario. Every call returns when its answer has arrived.
class ScenarioTarget {
 public:
  ScenarioTarget() = default;
  ScenarioTarget(const ScenarioTarget&) = delete;
  ScenarioTarget& operator=(const ScenarioTarget&) = delete;
  virtual ~ScenarioTarget() = default;

  virtual Status put_profile(const jobs::NamedProfile& profile) = 0;
  virtual Result<jobs::RegisterJobAnswer> register_job(const jobs::RegisterJob& request) = 0;
  virtual Status register_rank(const jobs::RegisterRank& request) = 0;
  virtual Status upload_profile(const std::string& job, const jobs::NamedProfile& profile) = 0;
  virtual Status report_iterations(const jobs::ReportIterations& request) = 0;
  virtual Status drop_plan(const jobs::DropPlan& request) = 0;
  virtual Status see_shape(const jobs::SeeShape& request) = 0;
  virtual Status finish_job(const std::string& job) = 0;
  virtual Result<jobs::StragglerSet> set_straggler(const jobs::SetStraggler& request) = 0;
  virtual Status withdraw_straggler(const jobs::WithdrawStraggler& request) = 0;
  virtual Status set_policy(const jobs::SetPolicy& request) = 0;
  virtual Status clear_policy(const jobs::ClearPolicy& request) = 0;
  virtual Status set_tier(const jobs::SetTier& request) = 0;
  virtual Result<jobs::JobView> job(const std::string& job) = 0;
  /// The body of PUT /v1/site; empty: there is no site any more.
  virtual Status set_site(const std::string& document) = 0;
  /// The body of POST /v1/site/meter.
  virtual Status read_meter(const std::string& readings) = 0;
  /// The body of POST /v1/site/admission, and the answer.
  virtual Result<std::string> admit(const std::string& request) = 0;
  virtual Status release_admission(const std::string& job) = 0;
  /// The answer to GET /v1/site/power.
  virtual Result<std::string> site_power() = 0;

  /// Begins a wait and returns at once; answer_of() returns its state.
  virtual int wait_for_plan(const jobs::WaitForPlan& request) = 0;
  virtual std::optional<Result<jobs::PlanAnswer>> answer_of(int wait) = 0;
  /// The rank's host closes the connection of a wait, as when its process ends.
  virtual void close_wait(int wait) = 0;

  /// Sets the clock to this many seconds after the scenario's start; everything due by then happens.
  virtual void go_to(double seconds) = 0;
  [[nodiscard]] virtual double now_s() const = 0;
  /// Pauses work outside the I/O thread, or resumes it.
  virtual void hold_work(bool hold) = 0;
  /// The server is killed (kill -9) and starts again on the same data.
  virtual void restart() = 0;
  /// The server stops in order (SIGTERM) and starts again on the same data.
  virtual void stop_and_start() = 0;
  /// The database stops answering, or answers again.
  virtual void break_store(bool broken) = 0;
  /// The database accepts calls but answers none, or answers them now.
  virtual void freeze_store(bool frozen) = 0;
  /// The database is read-only, or accepts changes again.
  virtual void fill_disk(bool full) = 0;
  /// Removes the job from the database without notifying any server.
  virtual void lose_job(const std::string& job) = 0;
};

/// Runs the text; `name` stands for the file in messages, `folder` contains the profiles that it names.
Status play(std::string_view text, const std::string& name, const std::string& folder, ScenarioTarget& target);

}  // namespace perseus::testing
