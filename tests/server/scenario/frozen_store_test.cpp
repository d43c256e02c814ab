// A store that accepts calls and answers none: every request ends within a bounded time, and no code reads on the I/O
// thread (InProcess checks this in every scenario).
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using namespace jobs;
using namespace service;

class FrozenStore : public ::testing::Test {
 protected:
  FrozenStore() {
    EXPECT_TRUE(target.put_profile(small_profile("small", 4)).ok());
    jobs::RegisterJob request;
    request.degrees = {2, 2, 1};
    request.profile = "small";
    job = target.register_job(request).value().job;
    for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(target.register_rank(rank_request(rank)).ok());
  }
  jobs::RegisterRank rank_request(int rank) const { return rank_of(job, {2, 2, 1}, rank); }
  jobs::SetStraggler straggler(double degree) const {
    jobs::SetStraggler request{job, {}, Seconds(0), degree};
    request.target.pipeline = 0;
    return request;
  }
  template <class T>
  work::Done<T> into(std::optional<Result<T>>& answer) {
    return [&answer](Result<T> result) {
      EXPECT_FALSE(answer) << "a second answer";
      answer = std::move(result);
    };
  }
  template <class T>
  static bool is_unavailable(const std::optional<Result<T>>& answer) {
    return answer && !*answer && answer->error().code == ErrorCode::unavailable;
  }

  InProcess target;
  std::string job;
};

TEST_F(FrozenStore, AnswersChangesAndReadsWithinTheLimit) {
  target.freeze_store(true);
  std::optional<Result<jobs::StragglerSet>> changed;
  std::optional<Result<jobs::RegisterJobAnswer>> registered;
  std::optional<Result<jobs::JobView>> shown;
  std::optional<Result<std::vector<std::string>>> profiles;
  std::optional<Result<jobs::PlanAnswer>> plan;
  target.service().stragglers.set(straggler(1.2), into(changed));
  target.service().registrations.register_job({}, into(registered));
  target.service().job("not in memory", into(shown));
  target.service().profiles.names(into(profiles));
  const jobs::WaitId wait =
      target.service().waiting.wait({"not in memory", 0, 0, std::nullopt, std::nullopt}, into(plan));
  EXPECT_NE(wait, 0);
  target.go_to(9.9);
  EXPECT_FALSE(changed || registered || shown || profiles || plan);
  target.go_to(10.1);
  EXPECT_TRUE(is_unavailable(changed));
  EXPECT_TRUE(is_unavailable(registered));
  EXPECT_TRUE(is_unavailable(shown));
  EXPECT_TRUE(is_unavailable(profiles));
  EXPECT_TRUE(is_unavailable(plan));
  // The server sent the change; the store applies it when it resumes.
  target.freeze_store(false);
  EXPECT_EQ(target.job(job)->stragglers.size(), 1);
  EXPECT_TRUE(target.set_straggler(straggler(1.3)).ok());
}

TEST_F(FrozenStore, PilesUpNothingOnceItIsKnownNotToAnswer) {
  target.freeze_store(true);
  std::optional<Result<jobs::StragglerSet>> first;
  target.service().stragglers.set(straggler(1.2), into(first));
  target.go_to(11);
  ASSERT_TRUE(is_unavailable(first));
  std::optional<Result<jobs::StragglerSet>> second;
  target.service().stragglers.set(straggler(1.4), into(second));
  EXPECT_TRUE(is_unavailable(second));
  target.freeze_store(false);
  const auto view = target.job(job);
  ASSERT_EQ(view->stragglers.size(), 1) << "the second one was refused before it was sent";
  EXPECT_EQ(view->stragglers[0].degree, 1.2);
}

TEST_F(FrozenStore, AWaitForAJobThatIsBeingReadCanBeTakenBack) {
  target.restart();
  target.freeze_store(true);
  bool answered = false;
  const jobs::WaitId wait = target.service().waiting.wait({job, 0, 0, std::nullopt, std::nullopt},
                                                          [&](const Result<jobs::PlanAnswer>&) { answered = true; });
  EXPECT_NE(wait, 0);
  target.service().waiting.cancel(wait);
  target.freeze_store(false);
  EXPECT_FALSE(answered);
}

TEST_F(FrozenStore, RequestsForAJobThatIsBeingReadAreAnsweredInOrder) {
  target.restart();
  target.freeze_store(true);
  std::string order;
  const auto note = [&](char who) { return [&order, who](const auto& answer) { order += answer ? who : '!'; }; };
  target.service().registrations.register_rank(rank_request(0), note('a'));
  target.service().registrations.register_rank(rank_request(1), note('b'));
  target.service().waiting.wait({job, 1, 0, std::nullopt, std::nullopt}, note('c'));
  EXPECT_EQ(order, "");
  target.freeze_store(false);
  EXPECT_EQ(order, "abc");
}

TEST_F(FrozenStore, AnOrderlyStopEndsAndReportsUnwrittenEvents) {
  jobs::ReportIterations report;
  report.job = job;
  report.last_iteration = 5;
  report.plan_version = 1;
  report.iteration_time.assign(5, Seconds(1));
  for (report.rank = 0; report.rank < 4; ++report.rank) ASSERT_TRUE(target.report_iterations(report).ok());
  const int wait = target.wait_for_plan({job, 0, 1, std::nullopt, std::nullopt});
  target.freeze_store(true);
  std::optional<Result<Ok>> kept;
  target.service().drain(2, into(kept));
  EXPECT_TRUE(target.answer_of(wait));
  target.go_to(1.9);
  EXPECT_FALSE(kept);
  target.go_to(2.1);
  EXPECT_TRUE(is_unavailable(kept));
}

TEST_F(FrozenStore, AnUnansweredChangeIsNotShownBeforeItIsDurable) {
  std::optional<Result<Ok>> finished;
  std::optional<Result<jobs::StragglerSet>> changed;
  const std::string before = target.job(job)->header.state;
  target.freeze_store(true);
  target.service().stragglers.set(straggler(1.2), into(changed));
  target.service().operations.finish(job, into(finished));
  for (const double seconds : {0.1, 2.0, 9.9, 10.1, 29.0}) {  // then it is silent: its ranks never ask
    target.go_to(seconds);
    std::optional<Result<jobs::JobView>> shown;
    target.service().job(job, into(shown));
    target.settle();
    ASSERT_TRUE(shown && *shown) << seconds;
    EXPECT_EQ((*shown)->header.state, before) << seconds;
    EXPECT_EQ((*shown)->stragglers.size(), 0U) << seconds;
  }
  EXPECT_TRUE(is_unavailable(finished));
  target.freeze_store(false);
  EXPECT_EQ(target.job(job)->header.state, "finished");
  EXPECT_EQ(target.job(job)->stragglers.size(), 1U);
}

TEST_F(FrozenStore, RegistrationsUnderWayCountAsTheirTokens) {
  jobs::RegisterJob request;
  request.degrees = {2, 3, 1};
  request.facts["token"] = "mine";
  target.freeze_store(true);
  std::optional<Result<jobs::RegisterJobAnswer>> first, second;
  target.service().registrations.register_job(request, into(first));
  target.service().registrations.register_job(request, into(second));
  EXPECT_EQ(target.service().owned_by("mine").jobs, 2);
  EXPECT_EQ(target.service().owned_by("mine").ranks, 12);
  EXPECT_EQ(target.service().owned_by("other").jobs, 0);
  target.freeze_store(false);
  ASSERT_TRUE(first && *first && second && *second);
  EXPECT_EQ(target.service().owned_by("mine").jobs, 2) << "once each";
  target.freeze_store(true);
  std::optional<Result<jobs::RegisterJobAnswer>> lost;
  target.service().registrations.register_job(request, into(lost));
  target.go_to(11);
  ASSERT_TRUE(is_unavailable(lost));
  target.freeze_store(false);
  target.settle();
  EXPECT_LE(target.service().owned_by("mine").jobs, 3);
}

TEST_F(FrozenStore, RegistrationsWithAKeyCountFromTheStartToo) {
  // The server first checks in the store whether the key is new; before the answer, a burst could exceed the token's
  // limits.
  jobs::RegisterJob request;
  request.degrees = {2, 3, 1};
  request.facts["token"] = "mine";
  target.freeze_store(true);
  std::vector<std::optional<Result<jobs::RegisterJobAnswer>>> answers(5);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    request.idempotency_key = "a key of 16 or more " + std::to_string(i);
    target.service().registrations.register_job(request, into(answers[i]));
    EXPECT_EQ(target.service().owned_by("mine").jobs, static_cast<int>(i) + 1);
  }
  EXPECT_EQ(target.service().owned_by("mine").ranks, 30);
  target.freeze_store(false);
  for (const auto& answer : answers) EXPECT_TRUE(answer && *answer);
  EXPECT_EQ(target.service().owned_by("mine").jobs, 5) << "once each";
}

TEST_F(FrozenStore, AJobWhoseRegistrationLostItsAnswerIsListedOnceTheStoreAnswers) {
  jobs::RegisterJob request;
  request.degrees = {1, 2, 1};
  request.facts["token"] = "mine";
  const auto registrations = [&] {
    std::optional<Result<views::RecentEvents::Page>> page;
    target.service().recent.page({100, {}, [](const jobs::JobEvent& event) { return event.kind == "job_registered"; }},
                                 into(page));
    target.settle();
    return page && page->ok() ? (*page)->events.size() : 0;
  };
  EXPECT_EQ(registrations(), 1U);
  std::optional<Result<jobs::RegisterJobAnswer>> registered;
  target.lose_answers(true);
  target.service().registrations.register_job(request, into(registered));
  target.settle();
  ASSERT_TRUE(is_unavailable(registered));
  ASSERT_EQ(target.database().jobs().size(), 2U) << "it is there all the same";
  target.lose_answers(false);
  target.go_to(3);
  (void)target.service().list.list();
  EXPECT_EQ(target.service().owned_by("mine").jobs, 1);
  EXPECT_EQ(registrations(), 2U);
}

TEST_F(FrozenStore, TheStoredBytesOfATokenAreKnownFromTheStart) {
  jobs::RegisterJob request;
  request.degrees = {1, 2, 1};
  request.facts["token"] = "mine";
  const std::string own = target.register_job(request).value().job;
  ASSERT_TRUE(target.upload_profile(own, small_profile("p", 4)).ok());
  target.go_to(700);
  const std::int64_t bytes = target.service().stored_bytes->of("mine");
  EXPECT_GT(bytes, 0);
  target.freeze_store(true);  // the store answers no call after the start
  target.restart();
  EXPECT_EQ(target.service().stored_bytes->of("mine"), bytes);
}

}  // namespace
}  // namespace perseus::testing
