// The service behind its API and a real connection as a scenario's target: the same hand-turned clock, but every
// request is written and every answer read as HTTP and JSON, by routes that know nothing of the test.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "scenario/in_process.h"
#include "support/api_on_port.h"

namespace perseus::testing {

class OverHttp final : public ScenarioTarget {
 public:
  OverHttp();
  ~OverHttp() override;

  Status put_profile(const server::NamedProfile& profile) override;
  Result<server::RegisteredJob> register_job(const server::RegisterJob& request) override;
  Status register_rank(const server::RegisterRank& request) override;
  Status upload_profile(const std::string& job, const server::NamedProfile& profile) override;
  Status report_iterations(const server::ReportIterations& request) override;
  Status drop_plan(const server::DropPlan& request) override;
  Status finish_job(const std::string& job) override;
  Result<server::StragglerSet> set_straggler(const server::SetStraggler& request) override;
  Status withdraw_straggler(const server::WithdrawStraggler& request) override;
  Status set_policy(const server::SetPolicy& request) override;
  Status clear_policy(const server::ClearPolicy& request) override;
  Result<server::JobView> job(const std::string& job) override;
  int wait_for_plan(const server::WaitForPlan& request) override;
  std::optional<Result<server::PlanAnswer>> answer_of(int wait) override;
  void go_to(double seconds) override;
  [[nodiscard]] double now_s() const override { return inner_.now_s(); }
  bool hold_work(bool hold) override;
  void restart() override;
  void stop_and_start() override;
  bool break_store(bool broken) override;
  bool freeze_store(bool frozen) override;
  bool fill_disk(bool full) override { return inner_.fill_disk(full); }
  bool lose_job(const std::string& job) override;

 private:
  class Client;
  void open();
  void start_anew(void (InProcess::*way)());
  /// Runs server and connections until nothing moves any more.
  void settle();
  /// One request on a connection of its own: the answer's body, or the error that it says.
  Result<std::string> ask(const std::string& method, const std::string& target, const std::string& body = "");

  std::shared_ptr<MemoryDatabase> database_ = std::make_shared<MemoryDatabase>();
  boost::asio::io_context io_{1};
  InProcess inner_{{}, database_};
  HandTurnedClock clock_{0};  ///< for dates that nobody looks at
  std::unique_ptr<MemoryStore> token_store_;
  std::unique_ptr<server::Tokens> tokens_;
  std::unique_ptr<ApiOnPort> api_;
  std::vector<std::unique_ptr<Client>> waits_;
};

}  // namespace perseus::testing
