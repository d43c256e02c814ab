// Reports of iterations: what is rejected, counted, measured and kept.
#include "server/reports/iteration_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/savings/job_savings.h"
#include "tests/server/service/service_parts.h"

namespace perseus::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class IterationReportsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  IterationReportsTest() { base.create("job"); }
  std::optional<jobs::EnergyMeasured> highest() { return savings::highest_measured(job(), job().shown_shape()); }
  /// Of a rank under the plan in force, by the profile: iterations that are far from it are not counted.
  double planned_j() {
    return savings::iteration_cost(job(), live().frontiers.all(), savings::CountedRanks::as_they_are)->energy.value() /
           2;
  }
  /// Iterations of 1 s that end with `last`, under that plan.
  static jobs::ReportIterations request(int rank, std::int64_t last, std::int64_t count, std::int64_t version = 0,
                                        double energy_j = 100) {
    jobs::ReportIterations made;
    made.job = "job";
    made.rank = rank;
    made.last_iteration = last;
    made.plan_version = version;
    made.iteration_time.assign(count, Seconds(1));
    made.iteration_energy.assign(count, Joules(energy_j));
    return made;
  }
  Result<jobs::ReportedIterations> report(jobs::ReportIterations one) {
    base.clock().advance(10);
    return answer_of<jobs::ReportedIterations>([&](auto done) { reports.report(std::move(one), std::move(done)); });
  }
  /// Both ranks.
  void report_both(std::int64_t last, std::int64_t count, std::int64_t version, double energy_j) {
    for (const int rank : {0, 1}) ASSERT_TRUE(report(request(rank, last, count, version, energy_j)).ok());
  }

  std::shared_ptr<StragglerNotices> stragglers =
      std::make_shared<StragglerNotices>(base.jobs(), access, base.clock(), base);
  std::shared_ptr<IterationHistory> history =
      std::make_shared<IterationHistory>(base.access_to_store(), base.clock(), due, access, "this start");
  IterationReports reports{base.jobs(), base.clock(), access, *windows, *stragglers, *history};
};

TEST_F(IterationReportsTest, ImpossibleValuesAreErrors) {
  auto zero = request(0, 5, 1);
  zero.iteration_time = {Seconds(0)};
  EXPECT_EQ(report(zero).error().message,
            "iteration_time_s[0]: 0 s; allowed: more than 0, at most 2592000 s (30 days)");
  auto forever = request(0, 5, 2);
  forever.iteration_time[1] = Seconds(1e9);
  EXPECT_EQ(report(forever).error().message,
            "iteration_time_s[1]: 1000000000 s; allowed: more than 0, at most 2592000 s (30 days)");
  EXPECT_EQ(report(request(0, -1, 1)).error().message, "last_iteration: -1; allowed: 0 to 2^52");
  EXPECT_EQ(report(request(0, 29, 2000)).error().message,
            "last_iteration: 29; allowed: at least 1999, since iterations count from 0 and iteration_time_s has 2000 "
            "values");
  EXPECT_EQ(report(request(0, 5, 1, -7)).error().message,
            "plan_version: -7; allowed: 0 (the highest clock) or the version of a plan");
  EXPECT_EQ(report(request(7, 5, 1)).error().code, ErrorCode::not_found);
  EXPECT_EQ(live().reports.progress, std::nullopt) << "nothing was taken";
}

TEST_F(IterationReportsTest, ReportsOfClocksAreCheckedAndCounted) {
  const auto of_clocks = [&](std::int64_t last, jobs::ClockFigures clocks) {
    auto made = request(0, last, 1);
    made.clocks = clocks;
    return report(made);
  };
  EXPECT_EQ(of_clocks(5, {-1}).error().message, "clocks.set_mhz: -1; allowed: 0 (none) to 1000000 MHz");
  EXPECT_EQ(of_clocks(5, {1410, -1}).error().message, "clocks.failed: -1; allowed: 0 to 2^52");
  ASSERT_TRUE(of_clocks(6, {1410, 5, 0, 2}).ok());
  EXPECT_EQ(reports.clock_counts(), live::ClockCounts{}) << "another server may have counted these";
  ASSERT_TRUE(of_clocks(7, {1200, 6, 1, 2}).ok());
  EXPECT_EQ(reports.clock_counts(), (live::ClockCounts{1, 1, 0}));
  EXPECT_EQ(live().clocks.sums(), (live::ClockCounts{6, 1, 2}));
}

TEST_F(IterationReportsTest, SingleValuesAreLeftOutAndNamed) {
  auto longer = request(0, 5, 2);
  longer.iteration_energy.resize(3);
  EXPECT_THAT(report(longer)->rejected, ElementsAre(HasSubstr("3 values; allowed: 2")));
  auto negative = request(0, 7, 2);
  negative.iteration_energy[1] = Joules(-1);
  EXPECT_THAT(report(negative)->rejected, ElementsAre(HasSubstr("iteration_energy_j[1]: -1 J; allowed: more than 0")));
  auto absurd = request(0, 9, 2);
  absurd.iteration_time[0] = Seconds(1.5);
  absurd.iteration_energy[0] = Joules(1e12);
  EXPECT_THAT(report(absurd)->rejected,
              ElementsAre("iteration_energy_j[0]: 1000000000000 J; allowed: more than 0, at most 15000 J (10 kW)"));
}

TEST_F(IterationReportsTest, PlausibleReportsAreAccepted) {
  EXPECT_THAT(report(request(0, 29, 30))->rejected, IsEmpty()) << "from the first iteration on";
  auto suspended = request(0, 30, 1);
  suspended.iteration_time = {Seconds(7 * 86'400.0)};
  EXPECT_THAT(report(suspended)->rejected, IsEmpty());
  auto missed = request(0, 0, 0);
  missed.missed = "the GPU was throttled";
  EXPECT_THAT(report(missed)->rejected, IsEmpty());
  // The job continues at a much later iteration: all its ranks do.
  EXPECT_THAT(report(request(0, 1'000'000'000, 1))->rejected, ElementsAre(HasSubstr("no other rank has reached it")));
  EXPECT_THAT(report(request(1, 1'000'000'000, 1))->rejected, IsEmpty());
  EXPECT_THAT(report(request(0, 1'000'000'001, 1))->rejected, IsEmpty());
  EXPECT_EQ(live().reports.progress->iteration(), 1'000'000'001);
}

TEST_F(IterationReportsTest, APlanThatTheServerDoesNotKnowIsNamedAndItsIterationsDoNotCount) {
  plan();
  deploy(0);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(report(request(rank, 20, 20, 77))->rejected,
                ElementsAre("plan_version: 77; the job's last version is 1: the iterations do not count"));
    EXPECT_THAT(report(request(rank, 40, 20, live::provisional_version(now_s())))->rejected, IsEmpty())
        << "a plan from before it was durable";
  }
  EXPECT_EQ(job().total.iterations, 0);
  report_both(60, 20, 1, planned_j());
  EXPECT_EQ(job().total.iterations, 20);
}

TEST_F(IterationReportsTest, OnlyTheTwoWarmUpIterationsOfAReportAreNotMeasured) {
  auto slow = request(0, 9, 10, 0, 300);
  slow.iteration_energy[0] = slow.iteration_energy[1] = Joules(1);  // fewer than 8: the least one would count
  slow.iteration_time.resize(9);
  slow.iteration_energy.resize(9);
  slow.last_iteration = 8;
  for (const int rank : {0, 1}) {
    slow.rank = rank;
    ASSERT_TRUE(report(slow).ok());
  }
  ASSERT_TRUE(highest());
  EXPECT_EQ(highest()->iterations, 7);
  EXPECT_DOUBLE_EQ(highest()->energy_j, 600);
}

TEST_F(IterationReportsTest, EnergiesAreMeasuredOnceAllRanksHaveReported) {
  ASSERT_TRUE(report(request(0, 9, 8, 0, 300)).ok());
  EXPECT_FALSE(highest());
  ASSERT_TRUE(report(request(1, 9, 8, 0, 200)).ok());
  ASSERT_TRUE(highest());
  EXPECT_DOUBLE_EQ(highest()->energy_j, 500);
  EXPECT_DOUBLE_EQ(highest()->time_s, 1);
  EXPECT_EQ(highest()->iterations, 8);
}

TEST_F(IterationReportsTest, WarmUpAndIterationsWithAStragglerAreNotMeasured) {
  report_both(1, 2, 0, 100);
  base.append("job", {jobs::StragglerNoticed{"s1", {}, 0, 1.5, now_s()}, jobs::StragglerTookEffect{"s1"}});
  report_both(9, 4, 0, 100);
  EXPECT_FALSE(highest());
}

}  // namespace
}  // namespace perseus::reports
