// The service ends while calls of the store, work and timers are under way: what comes back is dropped.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "server/service/service.h"
#include "tests/server/scenario/two_stages.h"
#include "tests/support/test_store.h"

namespace perseus::testing {
namespace {

/// The I/O thread: work and its result, a store's call and its answer, each a piece of its own.
struct Pieces final : work::Executor {
  void submit(Kind /*kind*/, Work work) override {
    queue.push_back([this, work = std::move(work)] { queue.push_back(work()); });
  }
  void run(int most) {
    for (int i = 0; i < most && !queue.empty(); ++i) {
      const auto piece = std::move(queue.front());
      queue.pop_front();
      if (piece) piece();
    }
  }
  std::deque<std::function<void()>> queue;
};

jobs::SiteDocument site_of(double watts) {
  const std::string limit = std::to_string(watts);
  return jobs::parse_site_document(R"({"domains":[{"name":"hall","limits":[{"limit_w":)" + limit + "}]}]}", "a test")
      .value();
}

/// A service with a job that has a plan, before calls of every kind.
class ServiceEnd : public ::testing::Test {
 protected:
  void open() {
    service_ = service::Service::open({}, store_, clock_, pieces_).value();
    service_->tick();
    service_->profiles.put(profile(), ignored<jobs::StoredProfile>());
    pieces_.run(1'000'000);
    jobs::RegisterJob request;
    request.degrees = {1, 2, 1};
    request.profile = "two";
    service_->registrations.register_job(request,
                                         [this](const Result<jobs::RegisterJobAnswer>& answer) { job_ = answer->job; });
    pieces_.run(1'000'000);
    for (int rank = 0; rank < 2; ++rank)
      service_->registrations.register_rank(rank_of(rank), ignored<jobs::RegisterRankAnswer>());
    service_->site.documents().set(site_of(1000), std::nullopt, ignored<Ok>());
    pieces_.run(1'000'000);
  }
  /// Calls whose answers come later; each is counted.
  void ask() {
    jobs::NamedProfile other = profile();
    other.name = "other";
    other.shape.microbatches = 3;
    service_->profiles.put(other, counted<jobs::StoredProfile>());
    service_->uploads.upload(job_, other, {}, counted<Ok>());
    service_->profiles.learned(counted<std::vector<jobs::LearnedProfile>>());
    jobs::RegisterJob request;
    request.degrees = {1, 2, 1};
    request.profile = "two";
    request.idempotency_key = "a key of the client";
    request.facts["token"] = "t1";
    service_->registrations.register_job(request, counted<jobs::RegisterJobAnswer>());
    service_->registrations.register_rank(rank_of(0), counted<jobs::RegisterRankAnswer>());
    service_->stragglers.set({job_, {}, {}, 1.5}, counted<jobs::StragglerSet>());
    service_->site.documents().set(site_of(700), std::nullopt, counted<Ok>());
    service_->admissions.admit(
        jobs::parse_admission_request(R"({"job":"a","accelerators":1,"accelerator_w":90})", "a").value(),
        counted<power::Admission>());
    service_->forecasts.forecast(1, counted<power::SiteForecast>());
    service_->site_history.proof({}, counted<power::SiteProof>());
    service_->history.history({}, counted<savings::HistoryView>());
    service_->recent.page({}, counted<views::RecentEvents::Page>());
    service_->subscriptions.subscribe(
        job_, 0, [this](const jobs::JobEvent&) { ++called_; }, counted<jobs::SubscriptionId>());
    jobs::WaitForPlan wait;
    wait.job = job_;
    wait.rank = 1;
    service_->waiting.wait(wait, counted<jobs::PlanAnswer>());
    service_->tick();
  }

  static jobs::NamedProfile profile() {
    jobs::NamedProfile profile;
    profile.name = "two";
    profile.profile_csv = kTwoStages;
    profile.shape.microbatches = 2;
    return profile;
  }
  [[nodiscard]] jobs::RegisterRank rank_of(int rank) const {
    jobs::RegisterRank request;
    request.job = job_;
    request.rank = request.pp_rank = rank;
    request.accelerator = "GPU-" + std::to_string(rank);
    return request;
  }
  template <class T>
  static work::Done<T> ignored() {
    return [](const Result<T>& answer) { EXPECT_TRUE(answer.ok()); };
  }
  template <class T>
  work::Done<T> counted() {
    return [this](const Result<T>&) { ++called_; };
  }

  Pieces pieces_;
  HandTurnedClock clock_{1'800'000'000};
  TestStore store_{[this](std::function<void()> work) { pieces_.queue.push_back(std::move(work)); }};
  std::unique_ptr<service::Service> service_;
  std::string job_;
  int called_ = 0;
};

TEST_F(ServiceEnd, DropsWhatComesBackLater) {
  int all = 0;
  for (int before = 0;; ++before) {
    open();
    ask();
    pieces_.run(before);
    const bool none_left = pieces_.queue.empty();
    clock_.turn_to(clock_.now_s() + 1);
    service_->tick();  // also what time has begun is under way
    service_.reset();  // answers who still waits
    all = std::exchange(called_, 0);
    pieces_.run(1'000'000);
    EXPECT_EQ(called_, 0) << "answered after the end, " << before << " pieces before it";
    if (none_left || before > 2000) break;
  }
  EXPECT_GE(all, 14) << "without an end in between, each call is answered";
}

}  // namespace
}  // namespace perseus::testing
