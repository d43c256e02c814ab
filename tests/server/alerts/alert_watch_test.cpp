// Which facts of a job the alerts see, and how many jobs are looked at together.
#include "server/alerts/alert_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::alerts {
namespace {

class AlertWatchTest : public ::testing::Test,
                       protected testing::ServiceParts,
                       protected power::SiteReadings,
                       protected AlertSink {
 protected:
  AlertWatchTest() { base.create("job"); }
  /// Ticks at each wake for that long; the number of ticks.
  int pass(double seconds) {
    int ticks = 0;
    const double until_s = now_s() + seconds;
    while (due.next().value_or(1e12) <= until_s) {
      base.clock().turn_to(*due.next());
      due.perform(now_s());
      ++ticks;
    }
    base.clock().turn_to(until_s);
    return ticks;
  }
  void loses_permission(int rank, const std::string& control = "none") {
    jobs::RankMeasured measured;
    measured.rank = rank;
    measured.control = control;
    measured.control_reason = "no permission";
    base.append("job", {measured});
  }
  std::size_t raised() { return watch.alerts().page({10, {}, {}}).alerts.size(); }

  void changed(const jobs::Alert& /*alert*/) override {}
  std::optional<power::SitePowerView> allocated_now() override { return allocated; }

  std::optional<power::SitePowerView> allocated;
  AlertWatch watch{base.jobs(), *this, base.clock(), due, 60, *this};
};

TEST_F(AlertWatchTest, RanksWithoutPermissionAreCountedAndAdviceIsNot) {
  loses_permission(0, "advice");
  EXPECT_EQ(alert_facts(live()).without_permission, 0);
  loses_permission(1);
  const AlertFacts facts = alert_facts(live());
  EXPECT_EQ(facts.without_permission, 1);
  EXPECT_EQ(facts.permission_reason, "no permission");
  pass(45);
  EXPECT_EQ(raised(), 0U);
  pass(45);
  EXPECT_EQ(raised(), 1U);
}

TEST_F(AlertWatchTest, DomainsAreLookedAtWhereTheWattsAreAllocated) {
  allocated.emplace().domains.resize(2);
  power::SiteDomainView& domain = allocated->domains[0];
  domain.name = "hall";
  domain.limit = Watts(1000);
  domain.counted = Watts(1500);
  domain.missing = Watts(100);
  allocated->domains[1].name = "row";
  pass(90);
  const auto page = watch.alerts().page({10, {}, {}});
  ASSERT_EQ(page.alerts.size(), 2U);
  EXPECT_EQ(page.alerts[0]->job, "site/hall");
  EXPECT_EQ(page.alerts[0]->name, "hall");
  pass(90);
  EXPECT_EQ(raised(), 2U) << "a round over the jobs leaves them";
  allocated.reset();
  pass(30);
  EXPECT_EQ(raised(), 0U);
}

TEST_F(AlertWatchTest, ADroppedPlanIsAFactUntilTheJobHasAnotherProfile) {
  plan();
  deploy(1);
  base.append("job", {jobs::PlanDropped{0, job().version, "too slow", 1.2, 1}});
  EXPECT_NE(alert_facts(live()).dropped, "");
  plan(testing::two_stages_input(Seconds(0.01)));
  EXPECT_EQ(alert_facts(live()).dropped, "");
}

TEST_F(AlertWatchTest, ThePowerOfAPlanIsMeasuredThoughTheHighestClockIsNot) {
  plan();
  deploy(1);
  base.append("job", {jobs::PolicySet{jobs::PowerCap{Watts(150)}}, jobs::ReportsKept{}});
  EXPECT_FALSE(alert_facts(live()).power_measured);
  base.append("job", {jobs::EnergyMeasured{job().version, 8, 400, 2}});
  const AlertFacts facts = alert_facts(live());
  EXPECT_TRUE(facts.power_measured) << "as a job whose clocks a site has limited since it began";
  EXPECT_EQ(facts.power, Watts(200));
}

TEST_F(AlertWatchTest, TheAlertsOfAJobThatEndedAreResolved) {
  loses_permission(0);
  pass(120);
  EXPECT_EQ(raised(), 1U);
  base.append("job", {jobs::JobFinished{}});
  pass(20);
  EXPECT_EQ(raised(), 0U);
}

TEST_F(AlertWatchTest, ManyJobsAreLookedAtInParts) {
  const std::size_t jobs = 3 * AlertWatch::kJobsAtOnce;
  for (std::size_t k = 1; k < jobs; ++k) base.create(fmt::format("job-{}", k));
  loses_permission(0);
  EXPECT_GE(pass(0.3), 3);
  EXPECT_GT(*due.next(), now_s() + 10) << "the round is over";
  pass(90);
  EXPECT_EQ(raised(), 1U);
}

TEST_F(AlertWatchTest, WithoutATimeThereAreNoAlertsAndNoWakes) {
  watch.set_after(0);
  EXPECT_EQ(due.next(), std::nullopt);
  loses_permission(0);
  due.perform(now_s() + 1000);
  EXPECT_EQ(raised(), 0U);
}

}  // namespace
}  // namespace perseus::alerts
