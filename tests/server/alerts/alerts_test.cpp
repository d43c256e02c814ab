// When an alert is raised and resolved, under a turned clock.
#include "server/alerts/alerts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::alerts {
namespace {

using jobs::Alert;
using jobs::AlertKind;

constexpr double kAfter_s = 300;

class AlertsTest : public ::testing::Test, protected AlertSink {
 protected:
  void changed(const Alert& alert) override {
    changes.push_back(
        fmt::format("{} {} {}", alert.resolved_s ? "resolved" : "raised", name_of(alert.kind), alert.job));
  }
  /// Looks at the facts every ten seconds for that long.
  void pass(double seconds) {
    for (const double until = now_s + seconds; now_s < until;) {
      now_s += 10;
      alerts.look(facts, now_s);
    }
  }
  [[nodiscard]] std::string text() const {
    const auto page = alerts.page({10, {}, {}});
    return page.alerts.empty() ? "" : page.alerts.front()->text;
  }

  Alerts alerts{kAfter_s, *this};
  AlertFacts facts = [] {
    AlertFacts made;
    made.job = "job";
    made.name = "gpt";
    return made;
  }();
  double now_s = 1000;
  std::vector<std::string> changes;
};

TEST_F(AlertsTest, AConditionThatStaysRaisesOneAlertAndIsResolvedOnce) {
  pass(1000);
  facts.without_permission = 3;
  facts.permission_reason = "no permission";
  pass(290);
  EXPECT_TRUE(changes.empty());
  pass(1000);
  EXPECT_EQ(changes, std::vector<std::string>{"raised no_permission job"});
  EXPECT_EQ(text(), "3 of its ranks cannot set their clocks: no permission");
  EXPECT_EQ(alerts.counts()[static_cast<std::size_t>(AlertKind::no_permission)], 1);
  EXPECT_EQ(alerts.page({10, {}, {}}).alerts.front()->since_s, 2010);
  facts.without_permission = 0;
  pass(300);
  EXPECT_EQ(changes.size(), 1U);
  pass(1000);
  EXPECT_EQ(changes, (std::vector<std::string>{"raised no_permission job", "resolved no_permission job"}));
  EXPECT_EQ(text(), "");
  EXPECT_EQ(alerts.counts()[static_cast<std::size_t>(AlertKind::no_permission)], 0);
  EXPECT_EQ(alerts.resolved().front().resolved_s, 3600);
  pass(1000);
  EXPECT_EQ(changes.size(), 2U);
}

TEST_F(AlertsTest, AShortConditionRaisesNothing) {
  for (int k = 0; k < 20; ++k) {
    facts.without_permission = 1;
    pass(250);
    facts.without_permission = 0;
    pass(20);
  }
  EXPECT_TRUE(changes.empty());
}

TEST_F(AlertsTest, AConditionThatComesAndGoesKeepsItsAlert) {
  facts.without_permission = 1;
  pass(400);
  for (int k = 0; k < 20; ++k) {
    facts.without_permission = 0;
    pass(250);
    facts.without_permission = 1;
    pass(20);
  }
  EXPECT_EQ(changes, std::vector<std::string>{"raised no_permission job"});
}

TEST_F(AlertsTest, BetweenTheLimitsAnAlertStaysAsItIs) {
  facts.planned = Seconds(1);
  facts.measured = Seconds(1.025);
  pass(2000);
  EXPECT_TRUE(changes.empty());
  facts.measured = Seconds(1.04);
  pass(400);
  EXPECT_EQ(changes, std::vector<std::string>{"raised plan_not_kept job"});
  EXPECT_EQ(text(), "iterations take 1.04 s; planned: 1 s");
  facts.measured = Seconds(1.025);
  pass(2000);
  EXPECT_EQ(changes.size(), 1U);
  facts.measured = Seconds(1.015);
  pass(400);
  EXPECT_EQ(changes.back(), "resolved plan_not_kept job");
}

TEST_F(AlertsTest, ADroppedPlanAndFailedProfilingWaitForNothing) {
  facts.dropped = "rank 3 dropped plan 5";
  facts.profiling_failed = "no results";
  pass(10);
  EXPECT_EQ(changes, (std::vector<std::string>{"raised profiling_stuck job", "raised plan_not_kept job"}));
}

TEST_F(AlertsTest, AProfilingWindowIsStuckAfterHalfAnHourOfItsOwn) {
  facts.window_since_s = now_s;
  pass(1800);
  EXPECT_TRUE(changes.empty());
  pass(10);
  EXPECT_EQ(changes, std::vector<std::string>{"raised profiling_stuck job"});
  EXPECT_EQ(alerts.page({10, {}, {}}).alerts.front()->since_s, 1000) << "the log's time, also after a restart";
  facts.window_since_s = now_s;
  pass(400);
  EXPECT_EQ(changes.back(), "resolved profiling_stuck job");
}

TEST_F(AlertsTest, AWindowWithoutAllReportsIsStuckToo) {
  facts.window_since_s = now_s;
  facts.windows_overdue = 1;
  pass(10);
  EXPECT_EQ(changes, std::vector<std::string>{"raised profiling_stuck job"});
}

TEST_F(AlertsTest, PowerIsComparedWithTheCap) {
  facts.power = Watts(9000);
  pass(1000);
  EXPECT_TRUE(changes.empty()) << "no cap";
  facts.cap = Watts(9000);
  pass(1000);
  EXPECT_TRUE(changes.empty());
  facts.power = Watts(10000);
  pass(400);
  EXPECT_EQ(text(), "the job draws 10 kW (est.); its power cap: 9 kW");
  facts.power_measured = true;
  pass(10);
  EXPECT_EQ(text(), "the job draws 10 kW; its power cap: 9 kW");
  EXPECT_EQ(changes.size(), 1U);
}

TEST_F(AlertsTest, AJobThatEndsTakesItsAlertsAlong) {
  facts.without_permission = 1;
  pass(400);
  AlertFacts other = facts;
  other.job = "job2";
  alerts.look(other, now_s);
  alerts.look(other, now_s + 400);
  alerts.job_over("job", now_s);
  EXPECT_EQ(changes, (std::vector<std::string>{"raised no_permission job", "raised no_permission job2",
                                               "resolved no_permission job"}));
  EXPECT_EQ(alerts.jobs_with_alerts(), std::vector<std::string>{"job2"});
  alerts.job_over("job", now_s);
  EXPECT_EQ(changes.size(), 3U);
}

TEST_F(AlertsTest, PagesShowEachAlertOnceTheLastOneFirst) {
  for (int k = 0; k < 7; ++k) {
    facts.job = fmt::format("job{}", k);
    facts.dropped = "dropped";
    now_s = 1000 + k / 2;  // some at the same time
    alerts.look(facts, now_s);
  }
  std::vector<std::string> seen;
  std::optional<Alerts::Place> after;
  do {
    const Alerts::Page page = alerts.page({3, after, {}});
    for (const Alert* alert : page.alerts) seen.push_back(alert->job);
    after = page.next ? parse_alert_cursor(format_alert_cursor(*page.next)) : std::nullopt;
  } while (after);
  EXPECT_EQ(seen, (std::vector<std::string>{"job6", "job4", "job5", "job2", "job3", "job0", "job1"}));
  for (const char* wrong : {"", "1", "1,over_power", "x,over_power,j", "1,none,j", "inf,over_power,j"}) {
    EXPECT_FALSE(parse_alert_cursor(wrong)) << wrong;
  }
}

TEST_F(AlertsTest, ADomainThatStaysAboveItsLimit) {
  facts.job = jobs::job_of_domain("hall");
  facts.name = "hall";
  facts.limit = Watts(60'000);
  facts.counted = Watts(60'000.01);  // rounding
  pass(1000);
  facts.counted = Watts(66'000);  // until the ranks have confirmed a fall
  pass(200);
  facts.counted = Watts(60'000);
  pass(1000);
  EXPECT_TRUE(changes.empty());
  facts.counted = Watts(61'500);
  pass(400);
  EXPECT_EQ(changes, std::vector<std::string>{"raised site_over_limit site/hall"});
  EXPECT_EQ(text(), "its jobs may draw 61.5 kW; the limit leaves 60 kW for accelerators");
  facts.counted = Watts(60'000);
  facts.metered_limit = Watts(78'000);
  facts.metered = Watts(80'000);
  pass(400);
  EXPECT_EQ(text(), "the meter reads 80 kW; the limit: 78 kW");
  facts.metered = Watts(77'000);
  pass(400);
  EXPECT_EQ(changes.back(), "resolved site_over_limit site/hall");
  facts.meter_refused = Watts(5e6);
  pass(1);
  EXPECT_EQ(text(), "the meter reads 5000 kW, which cannot be true: the reading is refused");
  facts.meter_refused.reset();
  pass(400);
  EXPECT_EQ(changes.back(), "resolved site_over_limit site/hall");
}

TEST_F(AlertsTest, ADomainThatLacksWatts) {
  facts.job = jobs::job_of_domain("hall");
  facts.name = "hall";
  facts.missing = Watts(2500);
  pass(400);
  EXPECT_EQ(changes, std::vector<std::string>{"raised watts_missing site/hall"});
  EXPECT_EQ(text(), "2.5 kW are missing for the least rates of its jobs and for what no grant controls");
  EXPECT_EQ(alerts.counts()[static_cast<std::size_t>(AlertKind::watts_missing)], 1);
}

TEST_F(AlertsTest, ADomainWithALimitThatCannotBeRead) {
  facts.job = jobs::job_of_domain("hall");
  facts.name = "hall";
  facts.limits_unread = "event e1: its unit is 'KVA'";
  alerts.look(facts, now_s);
  EXPECT_EQ(changes, std::vector<std::string>{"raised limits_unread site/hall"});
  EXPECT_EQ(text(), "event e1: its unit is 'KVA'; the least limit that was known holds");
  facts.limits_unread.clear();
  pass(400);
  EXPECT_EQ(changes.back(), "resolved limits_unread site/hall");
}

TEST_F(AlertsTest, ASilentJobNamesItsWattsAndTheCommandThatEndsIt) {
  facts.silent_since_s = now_s - 100;
  facts.held = Watts(628);
  pass(250);
  EXPECT_EQ(changes, std::vector<std::string>{"raised job_silent " + facts.job}) << "it counts from the last call";
  EXPECT_THAT(text(), ::testing::HasSubstr("and it still counts as 0.628 kW"));
  EXPECT_THAT(text(), ::testing::HasSubstr("if the job has ended: perseus job finish " + facts.job));
  facts.silent_since_s.reset();
  pass(400);
  EXPECT_EQ(changes.back(), "resolved job_silent " + facts.job);
}

TEST_F(AlertsTest, ASilentRankIsNamedWhileOthersCall) {
  facts.silent_since_s = now_s - 100;
  facts.silent_ranks = "rank 3 on node-7 does not call, while others do";
  facts.held = Watts(628);
  pass(250);
  EXPECT_EQ(changes, std::vector<std::string>{"raised job_silent " + facts.job});
  EXPECT_THAT(text(), ::testing::HasSubstr("rank 3 on node-7 does not call, while others do, for "));
  EXPECT_THAT(text(), ::testing::HasSubstr("and it still counts as 0.628 kW"));
}

TEST_F(AlertsTest, ResolvedAlertsAreBounded) {
  for (std::size_t k = 0; k < Alerts::kMostResolved + 5; ++k) {
    facts.job = fmt::format("job{}", k);
    facts.dropped = "dropped";
    alerts.look(facts, now_s);
    alerts.job_over(facts.job, now_s);
  }
  EXPECT_EQ(alerts.resolved().size(), Alerts::kMostResolved);
  EXPECT_EQ(alerts.resolved().front().job, fmt::format("job{}", Alerts::kMostResolved + 4));
}

}  // namespace
}  // namespace perseus::alerts
