// Whether one more job fits under the limits of a site, now and later.
#include "server/power/admission_decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::power {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Plans of 400 to 200 W, the slowest at half of full speed; 500 W at maximum clock.
PoweredJob steerable(int domain, double least_rate = 0) {
  policies::PowerChoices choices;
  choices.plans = {{Seconds(0.9), Watts(400)}, {Seconds(1), Watts(300)}, {Seconds(1.8), Watts(200)}};
  choices.full_speed = Seconds(0.9);
  choices.all_max = Watts(500);
  PoweredJob job;
  job.id = "a";
  job.domain = domain;
  job.least_rate = least_rate;
  job.choices = std::make_shared<const policies::PowerChoices>(choices);
  job.counted = job.granted = Watts(500);
  return job;
}

PoweredJob fixed(int domain, Watts power) {
  PoweredJob job;
  job.domain = domain;
  job.counted = job.granted = power;
  return job;
}

/// A hall with two rows.
PoweredSite rows(Watts hall, Watts row_a, Watts row_b) {
  PoweredSite site;
  site.domains = {{"hall", -1}, {"row-a", 0}, {"row-b", 0}};
  site.limits = {hall, row_a, row_b};
  return site;
}

TEST(AdmissionDecision, CountsTheOthersAtTheirLeastRates) {
  PoweredSite site = rows(Watts(1000), model::kNoLimit, model::kNoLimit);
  site.jobs = {steerable(1), steerable(2, 0.9), fixed(1, Watts(500))};  // 200 W, 300 W
  EXPECT_THAT(missing_for(site), IsEmpty());
  site.jobs.back() = fixed(1, Watts(501));
  const auto missing = missing_for(site);
  ASSERT_THAT(missing, SizeIs(1));
  EXPECT_EQ(missing[0].domain, 0);
  EXPECT_NEAR(missing[0].watts.value(), 1, 1e-9);
}

TEST(AdmissionDecision, LooksAtTheDomainsAroundTheNewcomer) {
  PoweredSite site = rows(Watts(1000), Watts(300), Watts(100));
  site.jobs = {steerable(1), steerable(2), fixed(0, Watts(500))};  // row-b lacks watts, the hall does not
  EXPECT_THAT(missing_for(site), IsEmpty());
  site.jobs.back() = fixed(1, Watts(150));
  const auto missing = missing_for(site);
  ASSERT_THAT(missing, SizeIs(1));
  EXPECT_EQ(missing[0].domain, 1);
  EXPECT_NEAR(missing[0].watts.value(), 50, 1e-9);
}

TEST(AdmissionDecision, FitsNowOnlyBesideWhatCounts) {
  PoweredSite site = rows(Watts(1000), model::kNoLimit, Watts(100));
  site.jobs = {steerable(1), steerable(2), fixed(1, Watts(100))};
  EXPECT_FALSE(fits_now(site)) << "the hall has 1,100 W";
  site.jobs[0].counted = Watts(400);
  EXPECT_TRUE(fits_now(site)) << "row-b is not around the newcomer";
  site.jobs.back() = fixed(2, Watts(1));
  EXPECT_FALSE(fits_now(site));
}

LaterCase later(std::vector<model::LimitStep> limits, Watts newcomer) {
  LaterCase made;
  made.document.site.domains.push_back({"hall", -1, std::move(limits)});
  made.site.domains = {{"hall", -1}};
  made.site.jobs = {steerable(0), fixed(0, newcomer)};
  made.accelerators = {16};
  made.newcomer = 8;
  made.meter_factors = {1};
  made.now_s = 1000;
  return made;
}

TEST(AdmissionDecision, NamesTheFirstTimeAtWhichItFits) {
  const std::vector<model::LimitStep> limits{
      {Seconds(0), Watts(400)}, {Seconds(2000), Watts(450)}, {Seconds(3000), Watts(700)}, {Seconds(4000), Watts(900)}};
  LaterFit fit = later_fit(later(limits, Watts(500)));
  EXPECT_EQ(fit.from_s, 3000);
  EXPECT_FALSE(fit.never);
  fit = later_fit(later(limits, Watts(800)));
  EXPECT_EQ(fit.from_s, std::nullopt) << "beside the other job it does not fit";
  EXPECT_FALSE(fit.never) << "the other job may end";
  fit = later_fit(later(limits, Watts(950)));
  EXPECT_TRUE(fit.never);
  ASSERT_THAT(fit.alone, SizeIs(1));
  EXPECT_NEAR(fit.alone[0].watts.value(), 50, 1e-9);
}

TEST(AdmissionDecision, NamesTheFirstFallThatLeavesTooLittle) {
  const std::vector<model::LimitStep> limits{
      {Seconds(0), Watts(1000)}, {Seconds(2000), Watts(600)}, {Seconds(3000), Watts(400)}, {Seconds(4000), Watts(100)}};
  LaterCase given = later(limits, Watts(300));
  given.site.limits = {Watts(1000)};
  auto shortage = later_shortage(given);
  ASSERT_TRUE(shortage.has_value());
  EXPECT_EQ(shortage->from_s, 3000);
  ASSERT_THAT(shortage->missing, SizeIs(1));
  EXPECT_NEAR(shortage->missing[0].watts.value(), 100, 1e-9);
  given.site.jobs.back() = steerable(0);
  shortage = later_shortage(given);
  ASSERT_TRUE(shortage.has_value());
  EXPECT_EQ(shortage->from_s, 4000) << "a job that gives watts too needs 200 W";
  given.site.jobs.back() = steerable(0, 0.9);
  EXPECT_EQ(later_shortage(given).value().from_s, 3000) << "300 W at its least rate";
  given.site.jobs.back() = fixed(0, Watts(0));
  EXPECT_FALSE(later_shortage(given).has_value()) << "the others lack watts without it";
}

TEST(AdmissionDecision, CountsTheHostsOfTheNewcomer) {
  LaterCase given = later({{Seconds(0), Watts(1000)}}, Watts(500));
  given.document.site.node_overhead = Watts(300);
  given.document.site.gpus_per_node = 8;
  given.site.jobs.erase(given.site.jobs.begin());
  given.accelerators = {8};
  EXPECT_FALSE(later_fit(given).never);
  given.document.site.node_overhead = Watts(501);
  const LaterFit fit = later_fit(given);
  EXPECT_TRUE(fit.never);
  ASSERT_THAT(fit.alone, SizeIs(1));
  EXPECT_NEAR(fit.alone[0].watts.value(), 1, 1e-9);
}

TEST(AdmissionDecision, FollowsARampToItsEnd) {
  LaterCase given = later({{Seconds(0), Watts(400)}, {Seconds(2000), Watts(1000)}}, Watts(500));
  given.document.site.domains[0].ramp.up_w_per_s = 0.01;
  const LaterFit fit = later_fit(given);
  ASSERT_TRUE(fit.from_s.has_value());
  EXPECT_GE(*fit.from_s, 2000 + 300 / 0.01) << "700 W";
  EXPECT_LE(*fit.from_s, 2000 + 300 / 0.01 + LaterFit::kHorizon_s / 100);
}

}  // namespace
}  // namespace perseus::power
