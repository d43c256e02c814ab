// The service itself as a scenario's target: in memory, on a hand-turned clock, each step runs to its end.
//
// The I/O thread is a queue that settle() runs until it is empty. The executor runs work at once, or holds back work
// that no request waits for. A read of the store outside the executor is a failed check. restart() destroys the
// service and all queued work, keeps the database, and opens a new service; stop_and_start() stops the service in
// order first.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "server/service/service.h"
#include "tests/server/scenario/scenario.h"
#include "tests/support/test_store.h"

namespace perseus::testing {

/// The lines of a server's log.
struct LoggedLines final : plans::ServerHost {
  void log(const std::string& line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

class InProcess final : public ScenarioTarget, public work::Executor {
 public:
  explicit InProcess(service::ServiceOptions options = {},
                     std::shared_ptr<TestDatabase> database = std::make_shared<TestDatabase>());
  ~InProcess() override;

  Status put_profile(const jobs::NamedProfile& profile) override;
  Result<jobs::RegisterJobAnswer> register_job(const jobs::RegisterJob& request) override;
  Status register_rank(const jobs::RegisterRank& request) override;
  Status upload_profile(const std::string& job, const jobs::NamedProfile& profile) override;
  Status report_iterations(const jobs::ReportIterations& request) override;
  Status drop_plan(const jobs::DropPlan& request) override;
  Status see_shape(const jobs::SeeShape& request) override;
  Status finish_job(const std::string& job) override;
  Result<jobs::StragglerSet> set_straggler(const jobs::SetStraggler& request) override;
  Status withdraw_straggler(const jobs::WithdrawStraggler& request) override;
  Status set_policy(const jobs::SetPolicy& request) override;
  Status clear_policy(const jobs::ClearPolicy& request) override;
  Status set_tier(const jobs::SetTier& request) override;
  Result<jobs::JobView> job(const std::string& job) override;
  Status set_site(const std::string& document) override;
  Status read_meter(const std::string& readings) override;
  Result<std::string> admit(const std::string& request) override;
  Status release_admission(const std::string& job) override;
  Result<std::string> site_power() override;
  int wait_for_plan(const jobs::WaitForPlan& request) override;
  std::optional<Result<jobs::PlanAnswer>> answer_of(int wait) override;
  [[nodiscard]] bool is_answered(int wait) const { return waits_[wait]->has_value(); }
  void close_wait(int wait) override;
  /// The connection of a wait ends on its way, not by the rank's host.
  void lose_wait(int wait);
  void go_to(double seconds) override;
  /// The same, and the service is not woken at the end unless it asks for that.
  void go_to_as_due(double seconds);
  [[nodiscard]] double now_s() const override { return clock_.now_s(); }
  void hold_work(bool hold) override;
  void restart() override;
  void stop_and_start() override;
  /// The server is killed now and starts again at `seconds`; `meanwhile` is called every quarter of a second.
  void stay_down(double seconds, const std::function<void()>& meanwhile);
  /// Server and database lose power, and start again.
  void lose_power();
  /// The machine sleeps: nothing happens until then.
  void sleep_until(double seconds);
  void break_store(bool broken) override;
  void freeze_store(bool frozen) override;
  void fill_disk(bool full) override {
    database_->write_failure = full ? std::optional(Error{ErrorCode::unavailable, "the disk is full"}) : std::nullopt;
  }
  /// The store makes changes, and its answers are lost.
  void lose_answers(bool lost) {
    database_->lost_answer =
        lost ? std::optional(Error{ErrorCode::unavailable, "the connection broke during the commit"}) : std::nullopt;
  }
  void lose_job(const std::string& job) override {
    PERSEUS_CHECK(database_->has_job(job), "a job of the database");
    database_->remove_job(job);
  }

  void submit(Kind kind, Work work) override;
  /// Holds back results of reads of the store, or delivers them.
  void hold_answers(bool hold);
  /// Holds back results of computed work, or delivers them.
  void hold_results(bool hold);
  /// Pauses refining, or resumes it; other work is done.
  void hold_refining(bool hold);

  service::Service& service() { return *service_; }
  [[nodiscard]] TestStore& store() { return *store_; }
  TestDatabase& database() { return *database_; }
  /// Runs the queued work, and the work that it queues.
  void settle();
  /// Runs only this many queued pieces: a crash may come between any two.
  void step(int pieces);

 private:
  void kill();
  template <class T>
  Result<T> answer(const std::function<void(work::Done<T>)>& call);

  void to_store(std::function<void()> work);

  service::ServiceOptions options_;
  std::shared_ptr<TestDatabase> database_;
  HandTurnedClock clock_{1'800'000'000};
  double start_s_ = clock_.now_s();
  std::deque<std::function<void()>> queue_;
  std::deque<std::function<void()>> at_store_;  ///< calls that a frozen store has not answered
  bool frozen_ = false;
  std::deque<Work> held_, held_refining_;
  std::vector<std::function<void()>> held_answers_, held_results_;
  bool holding_ = false, holding_refining_ = false, holding_answers_ = false, holding_results_ = false;
  std::unique_ptr<TestStore> store_;
  std::unique_ptr<service::Service> service_;
  std::vector<std::shared_ptr<std::optional<Result<jobs::PlanAnswer>>>> waits_;
  std::vector<jobs::WaitId> wait_ids_;
};

/// The registration of a rank of a job: tensor-parallel ranks follow each other, then stages, then pipelines.
jobs::RegisterRank rank_of(const std::string& job, const jobs::Degrees& degrees, int rank);

/// A pipeline of tests/server/scenario/small.csv, a profile of two stages, for 1F1B with this many microbatches.
jobs::NamedProfile small_profile(const std::string& name, int microbatches);

/// A database that holds these profiles (name, microbatches) and their frontiers, planned once in a test program, with
/// the options of the first call.
std::shared_ptr<TestDatabase> database_with(const std::map<std::string, int>& small_profiles,
                                            const service::ServiceOptions& options = {});

}  // namespace perseus::testing
