// The history of a job's iterations: minutes in memory, in the store, of two servers, and while the store fails.
#include "server/reports/iteration_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/savings/job_savings.h"
#include "tests/server/service/service_parts.h"

namespace perseus::reports {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kBegin_s = 1'800'000'000;

class IterationHistoryTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  IterationHistoryTest() { base.create("job"); }

  /// Iterations of 2 s and 30 J.
  void measure(std::int64_t count, std::int64_t version = 0) { measure(*history, count, version); }
  void measure(IterationHistory& of, std::int64_t count, std::int64_t version = 0) {
    std::vector<savings::WholeIteration> measured;
    for (std::int64_t i = 0; i < count; ++i) measured.push_back({next++, 2, 30, version, false});
    of.add(live(), measured);
  }
  void go_to(double s) {
    base.clock().advance(kBegin_s + s - now_s());
    due.perform(now_s());
    base.settle();
    base.due().perform(now_s());
    base.settle();
  }
  savings::HistoryView shown(std::int64_t step_s = store::kMinute_s) { return shown(*history, step_s); }
  savings::HistoryView shown(IterationHistory& of, std::int64_t step_s = store::kMinute_s,
                             std::string_view job = "job") {
    const savings::HistoryQuery query{std::string(job), step_s, 0, kBegin_s + 100'000, 1000};
    return answer_of<savings::HistoryView>([&](auto done) { of.history(query, done); }).value();
  }
  savings::HistoryView of_all(std::int64_t step_s = store::kMinute_s) {
    return shown(*history, step_s, store::kAllJobs);
  }
  [[nodiscard]] std::int64_t rows_of_job() const { return static_cast<std::int64_t>(database->history("job").size()); }
  static std::int64_t iterations(const savings::HistoryView& view) {
    std::int64_t sum = 0;
    for (const savings::HistoryBucket& bucket : view.buckets) sum += bucket.figures.iterations;
    return sum;
  }
  std::shared_ptr<IterationHistory> made(const std::string& source) {
    return std::make_shared<IterationHistory>(base.access_to_store(), base.clock(), due, access, source);
  }

  std::int64_t next = 0;
  std::shared_ptr<IterationHistory> history = made("this start");
};

TEST_F(IterationHistoryTest, IsShownAtOnceAndWrittenWhenItsMinuteIsOver) {
  EXPECT_THAT(shown().buckets, IsEmpty());
  EXPECT_EQ(due.next(), std::nullopt);
  measure(3);
  ASSERT_THAT(shown().buckets, SizeIs(1));
  EXPECT_EQ(shown().buckets[0], (savings::HistoryBucket{kBegin_s, {3, 6, 2, 2, 3, 90}}));
  EXPECT_EQ(due.next(), kBegin_s + 60);
  go_to(59);
  EXPECT_THAT(database->history("job"), IsEmpty());
  EXPECT_THAT(database->history(store::kAllJobs), IsEmpty());
  measure(1);
  go_to(60);
  EXPECT_EQ(rows_of_job(), 1);
  EXPECT_EQ(iterations(shown()), 4);
  EXPECT_EQ(due.next(), std::nullopt);
  measure(5);
  EXPECT_THAT(shown().buckets, SizeIs(2));
}

TEST_F(IterationHistoryTest, HasThePlanThatTheIterationsFollowed) {
  plan();
  deploy(1);
  const std::int64_t version = job().version;
  measure(2, version);
  measure(1);
  measure(1, version + 7);  // not known here
  const store::HistoryFigures figures = shown().buckets.at(0).figures;
  const auto cost = savings::iteration_cost(job(), live().frontiers.all());
  EXPECT_EQ(figures.iterations, 4);
  EXPECT_EQ(figures.planned_iterations, 2);
  EXPECT_DOUBLE_EQ(figures.planned_s, 2 * cost->time.value());
  EXPECT_DOUBLE_EQ(figures.planned_j, 2 * cost->energy.value());
  EXPECT_EQ(figures.last_version, version);
}

TEST_F(IterationHistoryTest, WhileTheStoreFailsNothingIsLostOrCountedTwice) {
  measure(3);
  database->write_failure = Error{ErrorCode::unavailable, "the disk is full"};
  go_to(60);
  measure(2);
  go_to(125);
  EXPECT_THAT(database->history("job"), IsEmpty());
  EXPECT_THAT(database->history(store::kAllJobs), IsEmpty());
  EXPECT_EQ(iterations(shown()), 5);
  database->write_failure.reset();
  go_to(140);
  EXPECT_EQ(rows_of_job(), 2);
  EXPECT_EQ(iterations(shown()), 5);
}

TEST_F(IterationHistoryTest, AWriteWithoutAnAnswerIsRepeatedWithoutCountingTwice) {
  measure(3);
  base.clock().advance(60);
  due.perform(now_s());  // the write is on its way
  base.clock().advance(11);
  base.due().perform(now_s());  // given up, and made all the same
  base.settle();
  EXPECT_EQ(rows_of_job(), 1);
  EXPECT_EQ(iterations(shown()), 3);
  go_to(100);
  EXPECT_EQ(rows_of_job(), 1);
  EXPECT_EQ(iterations(shown()), 3);
}

TEST_F(IterationHistoryTest, MinutesOfTwoServersAddUp) {
  const auto other = made("other server");
  measure(3);
  measure(*other, 4);
  go_to(60);
  due.perform(now_s());
  base.settle();
  EXPECT_EQ(rows_of_job(), 2);
  EXPECT_EQ(shown().buckets.at(0).figures.iterations, 7);
  EXPECT_EQ(shown(*other).buckets, shown().buckets);
}

TEST_F(IterationHistoryTest, OfAllJobsComparesTheSameIterations) {
  plan();
  deploy(1);
  const auto cost = savings::iteration_cost(job(), live().frontiers.all());
  measure(2, job().version);
  measure(3);                                                    // without a plan
  history->add(live(), {{next++, 2, 0, job().version, false}});  // without energies
  base.create("other");
  history->add(base.live("other"), {{0, 5, 70, 0, false}});
  ASSERT_THAT(of_all().buckets, SizeIs(1));
  const store::HistoryFigures figures = of_all().buckets[0].figures;
  EXPECT_EQ(figures.iterations, 7);
  EXPECT_EQ(figures.energy_iterations, 2);
  EXPECT_EQ(figures.energy_j, 60);
  EXPECT_EQ(figures.planned_iterations, 2);
  EXPECT_DOUBLE_EQ(figures.planned_j, 2 * cost->energy.value());
  EXPECT_EQ(figures.last_version, 0) << "versions of different jobs";
}

TEST_F(IterationHistoryTest, OfAllJobsIsWrittenAndReadOnceInTenSeconds) {
  measure(3);
  go_to(60);
  EXPECT_EQ(iterations(of_all()), 3);
  measure(4);
  EXPECT_EQ(iterations(of_all()), 3) << "as read before";
  EXPECT_EQ(iterations(of_all(store::kHour_s)), 7) << "another query";
  go_to(70);
  EXPECT_EQ(iterations(of_all()), 7);
  database->failure = Error{ErrorCode::unavailable, "gone"};
  EXPECT_EQ(iterations(of_all()), 7);
}

}  // namespace
}  // namespace perseus::reports
