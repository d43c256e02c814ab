// Jobs that start only when a site has admitted them and says that they are ready never exceed its limit, in whatever
// order they ask, start, follow their plans and end, and whenever the server is killed.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "oracles/dice.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

constexpr double kSame = 1 + 1e-9;
constexpr int kRanks = 2, kNames = 5;

class AdmittedJobs {
 public:
  explicit AdmittedJobs(ShrinkingDice& dice) : dice_(dice) {
    const int limit_w = dice_.roll(500, 2600);
    const std::string site =
        R"({"dwell_s":1,"lease_s":60,"admission_s":60,"domains":[{"name":"hall","limits":[{"limit_w":)" +
        std::to_string(limit_w) + R"(}]},{"name":"row","limits":[{"limit_w":)" +
        std::to_string(dice_.roll(400, limit_w)) + "}]}]}";
    RC_ASSERT(server_.set_site(site).ok());
    pass(1);
  }

  void act() {
    const std::string name = "job-" + std::to_string(dice_.roll(0, kNames - 1));
    switch (dice_.roll(0, 7)) {
      case 0:
      case 1:
      case 2:
        return ask(name);
      case 3:
        return follow_all();
      case 4:
        return pass(dice_.roll(1, 30));
      case 5:
        return finish(name);
      case 6:
        return (void)server_.release_admission(name).ok();
      default:
        return server_.restart();
    }
  }

  void check() {
    const auto view = server_.service().site.view();
    RC_ASSERT(view.ok());
    server_.settle();
    for (std::size_t d = 0; d < view->domains.size(); ++d) {
      Watts ready = view->domains[d].counted;
      for (const power::SiteReservationView& one : view->reservations) {
        const bool inside = one.domain == static_cast<int>(d) || d == 0;
        if (inside && one.ready) ready += one.counted;
      }
      RC_ASSERT(ready <= kSame * *view->domains[d].limit);
    }
  }
  [[nodiscard]] int started() const { return started_; }

 private:
  /// Starts the job if it may start.
  void ask(const std::string& name) {
    if (running_.contains(name)) return;
    const std::string domain = dice_.roll(0, 1) == 0 ? "hall" : "row";
    const auto answer =
        server_.admit(R"({"job":")" + name + R"(","accelerators":2,"profile":"small","domain":")" + domain + "\"}");
    const bool read_again = !answer && answer.error().code == ErrorCode::unavailable;
    RC_ASSERT(answer.ok() || read_again);
    if (read_again) return;
    if (dice_.roll(0, 2) > 0 && answer->find(R"("ready":true)") != std::string::npos) start(name, domain);
  }

  void start(const std::string& name, const std::string& domain) {
    jobs::RegisterJob request;
    request.name = name;
    request.degrees = {1, kRanks, 1};
    request.profile = "small";
    request.tier.domain = domain;
    const auto registered = server_.register_job(request);
    RC_ASSERT(registered.ok());
    running_[name] = registered->job;
    for (int rank = 0; rank < kRanks; ++rank) {
      jobs::RegisterRank one = rank_of(registered->job, request.degrees, rank);
      one.epoch = 1;
      one.keeps_budgets = true;
      RC_ASSERT(server_.register_rank(one).ok());
      server_.wait_for_plan({registered->job, rank, 0, std::nullopt, 0.0, 1});  // as a client that lives
      check();
      if (dice_.roll(0, 3) == 0) server_.restart();
    }
    ++started_;
  }

  void follow_all() {
    for (const auto& [name, job] : running_) {
      for (int rank = 0; rank < kRanks; ++rank) {
        if (dice_.roll(0, 5) == 0) continue;
        const int first = server_.wait_for_plan({job, rank, 0, std::nullopt, 0.0, 1});
        const auto plan = server_.answer_of(first);
        if (!plan || !*plan || !(*plan)->schedule) continue;
        server_.wait_for_plan({job, rank, (*plan)->schedule->version, std::nullopt, 0.0, 1});
      }
    }
    pass(1);
  }

  void finish(const std::string& name) {
    const auto job = running_.find(name);
    if (job == running_.end()) return;
    RC_ASSERT(server_.finish_job(job->second).ok());
    running_.erase(job);
  }

  void pass(double seconds) {
    for (double later = 0; later < seconds; ++later) {
      server_.go_to(now_s_ += 1);
      check();
    }
  }

  ShrinkingDice& dice_;
  service::ServiceOptions options_;
  InProcess server_{options_, database_with({{"small", 3}})};
  std::map<std::string, std::string> running_;  ///< ids by name
  double now_s_ = 0;
  int started_ = 0;
};

RC_GTEST_PROP(SiteAdmissionProperty, JobsThatWaitUntilTheyAreReadyExceedNoLimit, ()) {
  ShrinkingDice dice;
  AdmittedJobs jobs(dice);
  const int acts = dice.roll(10, 60);
  for (int k = 0; k < acts; ++k) {
    jobs.act();
    jobs.check();
  }
  RC_TAG(jobs.started() / 2);
}

}  // namespace
}  // namespace perseus::testing
