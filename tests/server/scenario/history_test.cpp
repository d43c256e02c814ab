// A job's history over days: written, down-sampled, restarted, on two servers, and while the database hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_writer.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kDaySeconds = 86400;

service::ServiceOptions with_ages() {
  service::ServiceOptions options;
  options.keep_minutes_s = kDaySeconds;
  options.keep_hours_s = 365 * kDaySeconds;
  return options;
}

class HistoryScenario : public ::testing::Test {
 protected:
  /// A job of one rank, with a plan.
  static std::string registered(InProcess& target) {
    PERSEUS_CHECK(target.put_profile(small_profile("small", 3)).ok(), "a profile");
    jobs::RegisterJob job;
    job.degrees = {1, 2, 1};
    job.profile = "small";
    const std::string id = target.register_job(job).value().job;
    for (const int rank : {0, 1}) PERSEUS_CHECK(target.register_rank(rank_of(id, job.degrees, rank)).ok(), "a rank");
    target.go_to(30);  // long enough for the first iterations
    return id;
  }
  void report(InProcess& target, const std::string& job, std::int64_t count = 1, double energy_j = 100) {
    last += count;
    for (const int rank : {0, 1}) {
      jobs::ReportIterations report;
      report.job = job;
      report.rank = rank;
      report.last_iteration = last;
      report.plan_version = target.job(job)->plan ? target.job(job)->plan->version : 0;
      report.iteration_time.assign(static_cast<std::size_t>(count), Seconds(10));
      if (energy_j > 0) report.iteration_energy.assign(static_cast<std::size_t>(count), Joules(energy_j));
      ASSERT_TRUE(target.report_iterations(report).ok());
    }
  }
  static Result<savings::HistoryView> history(InProcess& target, const std::string& job, std::int64_t step_s) {
    const auto view = std::make_shared<std::optional<Result<savings::HistoryView>>>();  // the answer may come later
    const savings::HistoryQuery query{job, step_s, 0, static_cast<std::int64_t>(target.now_s()) + 1, 100'000};
    target.service().history.history(query, [view](Result<savings::HistoryView> answer) { *view = std::move(answer); });
    target.settle();
    return *view ? **view : Result<savings::HistoryView>(Error{ErrorCode::unavailable, "no answer yet"});
  }
  static store::HistoryFigures sum(const savings::HistoryView& view) {
    store::HistoryFigures sum;
    for (const savings::HistoryBucket& bucket : view.buckets) sum.add(bucket.figures);
    return sum;
  }
  /// Planned values are fractions, whose sums depend on the order.
  static void expect_same(store::HistoryFigures one, const store::HistoryFigures& other) {
    EXPECT_DOUBLE_EQ(one.planned_s, other.planned_s);
    EXPECT_DOUBLE_EQ(one.planned_j, other.planned_j);
    one.planned_s = other.planned_s;
    one.planned_j = other.planned_j;
    EXPECT_EQ(one, other);
  }

  std::int64_t last = -1;
};

TEST_F(HistoryScenario, MinutesBecomeHoursAfterADayAndNoSumChanges) {
  InProcess target(with_ages());
  const std::string job = registered(target);
  for (int i = 0; i < 48; ++i) {
    target.go_to(i * 3600 + 60);
    report(target, job, 3);
    target.go_to(i * 3600 + 180);
    report(target, job, 5);
  }
  const auto minutes = history(target, job, store::kMinute_s).value();
  EXPECT_GE(minutes.buckets.size(), 2U * 24);
  EXPECT_LE(minutes.buckets.size(), 2U * 25);
  const auto hours = history(target, job, store::kHour_s).value();
  ASSERT_THAT(hours.buckets, SizeIs(48));
  for (const savings::HistoryBucket& hour : hours.buckets) {
    EXPECT_EQ(hour.figures.iterations, 8);
    EXPECT_EQ(hour.figures.energy_j, 1600);
    EXPECT_EQ(hour.figures.time_s, 80);
    EXPECT_EQ(hour.figures.planned_iterations, 8);
  }
  EXPECT_EQ(sum(hours).iterations, last + 1);
  expect_same(sum(history(target, job, savings::kDay_s).value()), sum(hours));
  for (int day = 3; day < 366; day += 5) target.go_to(day * kDaySeconds);
  EXPECT_THAT(history(target, job, store::kMinute_s)->buckets, IsEmpty());
  expect_same(sum(history(target, job, store::kHour_s).value()), sum(hours));
  target.go_to(370 * kDaySeconds);
  target.go_to(371 * kDaySeconds);
  EXPECT_THAT(history(target, job, store::kHour_s)->buckets, IsEmpty());
}

TEST_F(HistoryScenario, AnEnergyThatNoRankMeasuresIsUnknownAndNotZero) {
  InProcess target(with_ages());
  const std::string job = registered(target);
  report(target, job, 4, 0);
  const auto view = history(target, job, store::kMinute_s).value();
  ASSERT_THAT(view.buckets, SizeIs(1));
  EXPECT_EQ(view.buckets[0].figures.iterations, 4);
  EXPECT_EQ(view.buckets[0].figures.energy_iterations, 0);
  EXPECT_EQ(json_text(view).find("iteration_energy_j"), std::string::npos);
}

TEST_F(HistoryScenario, AStopLosesNothingAndAKillAtMostTheMinutesThatAreNotWritten) {
  InProcess target(with_ages());
  const std::string job = registered(target);
  report(target, job, 2);
  target.stop_and_start();
  EXPECT_EQ(sum(history(target, job, store::kMinute_s).value()).iterations, 2);
  report(target, job, 3);
  ASSERT_THAT(history(target, job, store::kMinute_s)->buckets, SizeIs(1)) << "of the same minute, by two processes";
  target.go_to(61);
  report(target, job, 7);
  target.restart();
  EXPECT_EQ(sum(history(target, job, store::kMinute_s).value()).iterations, 5);
}

TEST_F(HistoryScenario, ADatabaseThatHangsDelaysNoReport) {
  InProcess target(with_ages());
  const std::string job = registered(target);
  report(target, job, 2);
  target.freeze_store(true);
  target.go_to(61);
  report(target, job, 3);
  EXPECT_EQ(history(target, job, store::kMinute_s).error().code, ErrorCode::unavailable);
  target.go_to(200);
  report(target, job, 4);
  target.freeze_store(false);
  target.go_to(300);
  EXPECT_EQ(sum(history(target, job, store::kMinute_s).value()).iterations, 9);
}

TEST_F(HistoryScenario, ARemovedJobHasNone) {
  InProcess target(with_ages());
  const std::string job = registered(target);
  report(target, job, 2);
  target.go_to(61);
  ASSERT_TRUE(target.finish_job(job).ok());
  std::optional<Result<Ok>> removed;
  target.service().operations.remove(job, [&](Result<Ok> done) { removed = std::move(done); });
  target.settle();
  ASSERT_TRUE(removed && removed->ok());
  EXPECT_THAT(*target.database().stored().history_bytes(), IsEmpty()) << "of all jobs alone";
  EXPECT_EQ(sum(history(target, std::string(store::kAllJobs), store::kMinute_s).value()).iterations, 2);
  EXPECT_EQ(history(target, job, store::kMinute_s).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace perseus::testing
