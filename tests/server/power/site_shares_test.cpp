// Shares of a site whose meters average over windows.
#include "server/power/site_shares.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "server/power/admission_decision.h"
#include "server/power/site_guard.h"

namespace perseus::power {
namespace {

constexpr double kWaiting_w = 100;

/// A computation of 500 W for 1 s, 400 W for 1.5 s or 300 W for 2 s.
std::shared_ptr<const jobs::CharacterizedPipeline> pipeline() {
  jobs::CharacterizedPipeline made;
  made.key = "one";
  made.dag.types.resize(2);
  made.dag.types[0].options = {{Megahertz(1400), Seconds(1), Joules(500), {}, {}},
                               {Megahertz(1200), Seconds(1.5), Joules(600), {}, {}},
                               {Megahertz(1000), Seconds(2), Joules(600), {}, {}}};
  // Then the rank waits, as it loads data.
  made.dag.types[1].options = {{Megahertz(0), Seconds(1), Joules(kWaiting_w), {}, {}}};
  made.dag.computations.resize(2);
  made.dag.computations[1].type = 1;
  made.dag.dependencies = {{0, 1, Seconds(0)}};
  made.dag.rank_order = {{0, 1}};
  made.dag.accelerators = {1};
  made.dag.blocking_power = Watts(kWaiting_w);
  for (const int option : {2, 1, 0}) {
    const model::Measurement& m = made.dag.types[0].options[option];
    model::FrontierPoint point;
    point.plan = {static_cast<std::uint16_t>(option), 0};
    point.time = m.time + Seconds(1);
    point.effective_energy = m.energy - Watts(kWaiting_w) * m.time;
    made.frontier.points.push_back(point);
  }
  made.all_max_time = Seconds(2);
  made.all_max_effective_energy = made.frontier.points.back().effective_energy;
  return std::make_shared<const jobs::CharacterizedPipeline>(std::move(made));
}

/// Jobs of 300, 280 and 233 W in the mean, that draw 500, 400 and 300 W for a part of their iterations.
PoweredSite site_of(int count, Watts limit) {
  static const auto one = pipeline();
  policies::PowerChoices choices;
  choices.plans = policies::powers_from({{one.get(), 1, 1, 0}}, Seconds(2), Seconds(0));
  choices.full_speed = Seconds(2);
  choices.all_max = choices.plans.front().power;
  choices.pipelines = {{one, 1, 0}};
  PoweredSite site;
  site.domains = {{"hall", -1}, {"row", 0}};
  site.limits = {limit, model::kNoLimit};
  SwingLibrary library;
  for (int j = 0; j < count; ++j) {
    PoweredJob job;
    job.id = std::to_string(j);
    job.domain = 1;
    job.choices = std::make_shared<const policies::PowerChoices>(choices);
    job.swing = library.of(job.choices);
    job.counted = job.granted = job.all_max();
    site.jobs.push_back(job);
  }
  return site;
}

Watts sum_of(const SiteShares& shares) {
  Watts sum;
  for (const Watts wanted : shares.wanted) sum += wanted;
  return sum;
}

TEST(SiteShares, WithoutAWindowThereIsNoGuard) {
  PoweredSite site = site_of(5, Watts(1400));
  const SiteShares before = shares_of(site);
  EXPECT_TRUE(before.guard.empty());
  // A window of a domain without a limit changes nothing, to the last bit.
  site.windows = {std::nullopt, Seconds(1)};
  const SiteShares shares = shares_of(site);
  EXPECT_TRUE(shares.guard.empty());
  EXPECT_EQ(shares.wanted, before.wanted);
  EXPECT_EQ(shares.price, before.price);
  EXPECT_EQ(shares.missing, before.missing);
}

TEST(SiteShares, AWindowLeavesAGuard) {
  PoweredSite site = site_of(5, Watts(1400));
  const Watts before = sum_of(shares_of(site));
  site.windows = {Seconds(10), std::nullopt};
  const SiteShares shares = shares_of(site);
  EXPECT_LT(sum_of(shares), before);
  EXPECT_GT(shares.guard[0], Watts(0));
  EXPECT_EQ(shares.guard[1], Watts(0));
  EXPECT_LE(sum_of(shares) + guards_of(site, windows_of_limits(site), shares.wanted)[0], Watts(1400) * (1 + 1e-9));
  EXPECT_EQ(shares.missing[0], Watts(0));
}

TEST(SiteShares, ALimitThatTheSwingsReachBindsEvenAboveAllPower) {
  // 5 jobs of 300 W swing by 200 W upward if nothing is averaged.
  PoweredSite site = site_of(5, Watts(2499));
  EXPECT_EQ(sum_of(shares_of(site)), Watts(1500));
  site.windows = {Seconds(0), std::nullopt};
  EXPECT_LT(sum_of(shares_of(site)), Watts(1500));
  site.limits[0] = Watts(2500.001);
  EXPECT_EQ(sum_of(shares_of(site)), Watts(1500));
  EXPECT_EQ(shares_of(site).guard[0], Watts(0)) << "the limit does not bind";
}

TEST(SiteGuard, AJobSwingsLikeAnyPlanThatItMayFollow) {
  const PoweredSite site = site_of(1, Watts(1000));
  const PoweredJob& job = site.jobs[0];
  const auto above = [&](std::vector<Watts> grants) { return swing_under(job, grants, Seconds(0)).above.value(); };
  EXPECT_NEAR(above({Watts(300)}), 200, 1e-9);
  EXPECT_NEAR(above({Watts(280)}), 120, 1e-9);
  EXPECT_NEAR(above({Watts(234)}), 300 - 234.0, 1e-9);
  // Beyond the greatest grant; of the slow plan 300 W are the most, which is no more than that grant.
  EXPECT_NEAR(above({Watts(234), Watts(280)}), 120, 1e-9);
  EXPECT_NEAR(swing_under(job, std::array{Watts(234), Watts(300)}, Seconds(0)).variance_w2,
              swing_under(job, std::array{Watts(300)}, Seconds(0)).variance_w2, 1e-9);
  PoweredJob unknown = job;
  unknown.swing = nullptr;
  EXPECT_EQ(swing_under(unknown, std::array{Watts(300)}, Seconds(0)).above, Watts(0));
}

TEST(SiteGuard, ANewcomerFitsOnlyBesideTheGuard) {
  PoweredSite site = site_of(1, Watts(594));  // 300 W, 200 W of swing
  PoweredJob newcomer;
  newcomer.domain = 1;
  newcomer.counted = newcomer.granted = Watts(95);
  site.jobs.push_back(newcomer);
  EXPECT_TRUE(fits_now(site));
  site.windows = {Seconds(0), std::nullopt};
  EXPECT_FALSE(fits_now(site));
  site.limits[0] = Watts(595.001);
  EXPECT_TRUE(fits_now(site));
}

TEST(SiteGuard, AGrantRisesOnlyBesideTheGuard) {
  PoweredSite site = site_of(2, Watts(900));
  for (PoweredJob& job : site.jobs) job.granted = job.counted = Watts(700.0 / 3);
  const auto next = [&] {
    std::vector<site::GrantedPower> powers;
    for (const PoweredJob& job : site.jobs) powers.push_back({1, job.counted, job.granted, Watts(300), true});
    return next_grants(site, powers);
  };
  EXPECT_EQ(next(), (std::vector{Watts(300), Watts(300)}));
  site.windows = {Seconds(0), std::nullopt};
  // 300 W and 200 W above, with 233 W and 67 W above: 800 W.
  EXPECT_EQ(next(), (std::vector{Watts(300), Watts(700.0 / 3)}));
}

}  // namespace
}  // namespace perseus::power
