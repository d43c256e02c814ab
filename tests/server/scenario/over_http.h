// The service behind its API and a real connection as a scenario's target: on the same hand-turned clock, but every
// request and answer travels as HTTP and JSON through the production routes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "support/api_on_port.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {

class OverHttp final : public ScenarioTarget {
 public:
  OverHttp();
  ~OverHttp() override;

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
  Result<std::string> admit(const std::string& request) override { return ask("POST", "/v1/site/admission", request); }
  Status release_admission(const std::string& job) override;
  Result<std::string> site_power() override { return ask("GET", "/v1/site/power"); }
  int wait_for_plan(const jobs::WaitForPlan& request) override;
  std::optional<Result<jobs::PlanAnswer>> answer_of(int wait) override;
  void close_wait(int wait) override;
  void go_to(double seconds) override;
  [[nodiscard]] double now_s() const override { return inner_.now_s(); }
  void hold_work(bool hold) override;
  void restart() override;
  void stop_and_start() override;
  void break_store(bool broken) override { inner_.break_store(broken); }
  void freeze_store(bool frozen) override;
  void fill_disk(bool full) override { inner_.fill_disk(full); }
  void lose_job(const std::string& job) override { inner_.lose_job(job); }

 private:
  class Client;
  void open();
  void start_anew(void (InProcess::*way)());
  /// Runs server and connections until both are idle.
  void settle();
  /// One request on its own connection: the answer's body, or its error.
  Result<std::string> ask(const std::string& method, const std::string& target, const std::string& body = "");

  std::shared_ptr<TestDatabase> database_ = std::make_shared<TestDatabase>();
  boost::asio::io_context io_{1};
  InProcess inner_{{}, database_};
  HandTurnedClock clock_{0};  ///< for dates that no test checks
  std::unique_ptr<TestStore> token_store_;
  std::unique_ptr<access::Tokens> tokens_;
  std::unique_ptr<ApiOnPort> api_;
  std::vector<std::unique_ptr<Client>> waits_;
};

}  // namespace perseus::testing
