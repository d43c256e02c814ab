// Stories about the server as text files that anybody can add to: tests/server/scenario/*.txt, one test each.
//
// Problem: what the server does over hours (stragglers, expiry, restarts) must be tested in milliseconds, in-process
// and over HTTP alike. Input: a text, one step a line, `#` starts a comment; the steps are listed in README.md beside
// the texts. A Target does the steps: the service itself under a hand-turned clock, or a client of a real server.
// Output: nothing, or the first step that did not go as the text says: "file:line: what was expected, what is".
// Cost: that of the steps. Threads: one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/jobs/requests.h"

namespace perseus::testing {

/// What a scenario is played to. Every call returns when its answer is there.
class ScenarioTarget {
 public:
  ScenarioTarget() = default;
  ScenarioTarget(const ScenarioTarget&) = delete;
  ScenarioTarget& operator=(const ScenarioTarget&) = delete;
  virtual ~ScenarioTarget() = default;

  virtual Status put_profile(const jobs::NamedProfile& profile) = 0;
  virtual Result<jobs::RegisteredJob> register_job(const jobs::RegisterJob& request) = 0;
  virtual Status register_rank(const jobs::RegisterRank& request) = 0;
  virtual Status upload_profile(const std::string& job, const jobs::NamedProfile& profile) = 0;
  virtual Status report_iterations(const jobs::ReportIterations& request) = 0;
  virtual Status drop_plan(const jobs::DropPlan& request) = 0;
  virtual Status finish_job(const std::string& job) = 0;
  virtual Result<jobs::StragglerSet> set_straggler(const jobs::SetStraggler& request) = 0;
  virtual Status withdraw_straggler(const jobs::WithdrawStraggler& request) = 0;
  virtual Status set_policy(const jobs::SetPolicy& request) = 0;
  virtual Status clear_policy(const jobs::ClearPolicy& request) = 0;
  virtual Result<jobs::JobView> job(const std::string& job) = 0;

  /// Begins a wait and returns at once; answer_of() says what became of it.
  virtual int wait_for_plan(const jobs::WaitForPlan& request) = 0;
  virtual std::optional<Result<jobs::PlanAnswer>> answer_of(int wait) = 0;

  /// Turns the clock to so many seconds after the scenario's start; everything due by then happens.
  virtual void go_to(double seconds) = 0;
  [[nodiscard]] virtual double now_s() const = 0;
  /// Work away from the io thread stands still, or goes on. False: this target cannot.
  virtual bool hold_work(bool hold) = 0;
  /// The server dies at once (kill -9) and starts again on the same data.
  virtual void restart() = 0;
  /// The server stops in order (SIGTERM) and starts again on the same data.
  virtual void stop_and_start() = 0;
  /// The database does not answer, or does again. False: this target cannot.
  virtual bool break_store(bool broken) = 0;
  /// The database takes calls but answers none, or answers them now. False: this target cannot.
  virtual bool freeze_store(bool frozen) = 0;
  /// The database takes no change, or does again; it can be read. False: this target cannot.
  virtual bool fill_disk(bool full) = 0;
  /// Somebody removes the job from the database, and no server hears of it. False: this target cannot.
  virtual bool lose_job(const std::string& job) = 0;
};

/// Plays the text; `name` stands for the file in messages, `folder` is where it names profiles from.
Status play(std::string_view text, const std::string& name, const std::string& folder, ScenarioTarget& target);

}  // namespace perseus::testing
