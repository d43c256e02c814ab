// The forecast of a site: its steps, and what jobs give in each.
#include "server/power/site_forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::power {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

jobs::SiteDocument document(std::vector<model::LimitStep> limits, model::Ramp ramp = {}) {
  jobs::SiteDocument made;
  made.site.domains.push_back({"hall", -1, std::move(limits), ramp});
  return made;
}

/// Plans of 400, 300 and 200 W at 1, 0.9 and 0.5 of full speed; 500 W at maximum clock.
PoweredSite two_jobs() {
  policies::PowerChoices choices;
  choices.plans = {{Seconds(0.9), Watts(400)}, {Seconds(1), Watts(300)}, {Seconds(1.8), Watts(200)}};
  choices.full_speed = Seconds(0.9);
  choices.all_max = Watts(500);
  PoweredSite site;
  site.domains.push_back({"hall", -1});
  PoweredJob job;
  job.id = "a";
  job.choices = std::make_shared<const policies::PowerChoices>(choices);
  job.counted = job.granted = Watts(400);
  job.has_grant = true;
  site.jobs.push_back(job);
  PoweredJob fixed;
  fixed.id = "b";
  fixed.counted = fixed.granted = Watts(100);
  site.jobs.push_back(fixed);
  return site;
}

TEST(SiteForecast, HasAStepForEachChangeOfALimit) {
  const jobs::SiteDocument site = document({{Seconds(0), Watts(1000)},
                                            {Seconds(50), Watts(600)},
                                            {Seconds(150), Watts(450)},
                                            {Seconds(160), Watts(450)},
                                            {Seconds(200), model::kNoLimit}});
  const SiteForecast forecast = site_forecast(site, two_jobs(), {8, 8}, 100, 1000);
  ASSERT_THAT(forecast.steps, SizeIs(3));
  const ForecastDomain& now = forecast.steps[0].domains[0];
  EXPECT_EQ(forecast.steps[0].from_s, 100);
  EXPECT_EQ(now.limit, Watts(600));
  EXPECT_EQ(now.expected, Watts(500)) << "the fastest plan, and the job that no grant controls";
  EXPECT_EQ(now.tiers.at(0).rate_lost, 0);
  const ForecastDomain& low = forecast.steps[1].domains[0];
  EXPECT_EQ(forecast.steps[1].from_s, 150);
  EXPECT_EQ(low.expected, Watts(400));
  EXPECT_NEAR(low.tiers.at(0).rate_lost, 0.1, 1e-12);
  EXPECT_EQ(low.tiers.at(0).accelerators, 8);
  EXPECT_EQ(forecast.steps[2].domains[0].limit, std::nullopt);
  EXPECT_EQ(forecast.steps[2].domains[0].expected, Watts(500));
}

TEST(SiteForecast, SaysHowManyWattsAreMissing) {
  const jobs::SiteDocument site = document({{Seconds(0), Watts(250)}});
  const SiteForecast forecast = site_forecast(site, two_jobs(), {8, 8}, 100, 200);
  const ForecastDomain& domain = forecast.steps.at(0).domains[0];
  EXPECT_EQ(domain.missing, Watts(50));
  EXPECT_EQ(domain.expected, Watts(300)) << "the slowest plan";
  EXPECT_NEAR(domain.tiers.at(0).rate_lost, 0.5, 1e-12);
}

TEST(SiteForecast, AStepOfARampHasItsLeastLimit) {
  const jobs::SiteDocument site = document({{Seconds(0), Watts(1000)}, {Seconds(300), Watts(400)}}, {2, {}});
  std::vector<double> from, limits;
  for (const LimitsAt& at : forecast_steps(site, {16}, 0, 400)) {
    from.push_back(at.from_s);
    limits.push_back(std::round(at.limits[0].value()));
  }
  EXPECT_THAT(from, ElementsAre(0, 60, 120, 180, 240));
  EXPECT_THAT(limits, ElementsAre(880, 760, 640, 520, 400));
}

TEST(SiteForecast, IsCutAfterManySteps) {
  std::vector<model::LimitStep> limits;
  for (int k = 0; k < 400; ++k) limits.push_back({Seconds(k), Watts(500 + k)});
  const SiteForecast forecast = site_forecast(document(std::move(limits)), two_jobs(), {8, 8}, 0, 1000);
  EXPECT_THAT(forecast.steps, SizeIs(kMostSteps));
  EXPECT_TRUE(forecast.cut);
}

TEST(SiteForecast, IsCutWhenItsTimeIsOver) {
  std::vector<model::LimitStep> limits;
  for (int k = 0; k < 9; ++k) limits.push_back({Seconds(k), Watts(500 + k)});
  for (const std::size_t within : {1, 4}) {
    std::size_t made = 0;
    const SiteForecast forecast =
        site_forecast(document(limits), two_jobs(), {8, 8}, 0, 1000, [&] { return ++made == within; });
    EXPECT_THAT(forecast.steps, SizeIs(within)) << "the first step is always there";
    EXPECT_TRUE(forecast.cut);
  }
}

TEST(SiteForecast, IsInWattsAsDrawn) {
  PoweredSite site = two_jobs();
  site.jobs[0].correction = 1.2;
  const SiteForecast forecast = site_forecast(document({{Seconds(0), Watts(500)}}), site, {8, 8}, 100, 1000);
  const ForecastDomain& hall = forecast.steps.at(0).domains[0];
  EXPECT_EQ(hall.expected, Watts(300 * 1.2 + 100)) << "400 W are left: the plan of 300 W draws 360 W";
  EXPECT_NEAR(hall.tiers.at(0).rate_lost, 0.1, 1e-12);
}

}  // namespace
}  // namespace perseus::power
