// Allocations of random sites against a linear program, all combinations, and the checker.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "oracles/sites.h"
#include "planning/checker/allocation_check.h"
#include "planning/site/allocate.h"

namespace perseus::site {
namespace {

using model::Allocation;
using model::SiteObjective;
using testing::LimitedSite;
using testing::ShrinkingDice;

const std::vector kObjectives = {SiteObjective::throughput, SiteObjective::slowdown, SiteObjective::max_min};

SiteObjective any_objective(testing::Dice& dice) { return kObjectives[dice.roll(0, 2)]; }

/// Of a job: most sites are small, and some have curves so long that urgencies are sampled.
int any_points(testing::Dice& dice) { return dice.one_in(4) ? 200 : 8; }

/// Rates of all jobs.
std::vector<double> rates_of(const model::Site& site, const Allocation& allocation) {
  std::vector<double> rates;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    rates.push_back(site.jobs[j].curve.points[allocation.chosen[j]].rate);
  }
  return rates;
}

RC_GTEST_PROP(AllocateProperty, EveryAllocationIsCertified, ()) {
  ShrinkingDice dice;
  const LimitedSite limited = testing::random_site(dice, 8, 12, any_points(dice));
  RC_ASSERT(static_cast<bool>(model::validate(limited.site)));
  const SiteObjective objective = any_objective(dice);
  const Allocation allocation = Allocator(limited.site, objective).allocate(limited.limits);
  const auto wrong = checker::wrong_in_allocation(limited.site, limited.limits, objective, allocation);
  if (wrong) RC_FAIL(*wrong);
}

RC_GTEST_PROP(AllocateProperty, TheBoundIsTheLinearProgram, ()) {
  ShrinkingDice dice;
  const LimitedSite limited = testing::random_site(dice, 6, 10, any_points(dice));
  const SiteObjective objective = dice.one_in(2) ? SiteObjective::throughput : SiteObjective::slowdown;
  const Allocation allocation = Allocator(limited.site, objective).allocate(limited.limits);
  const auto optimum = testing::best_mix(limited, objective);
  RC_ASSERT(optimum.has_value() == !std::isnan(allocation.bound));
  if (!optimum) return;
  RC_LOG() << "optimum " << *optimum << ", bound " << allocation.bound << "\n";
  RC_ASSERT(std::abs(*optimum - allocation.bound) <= 1e-7 * std::max(1.0, std::abs(*optimum)));
}

RC_GTEST_PROP(AllocateProperty, TheValueIsBetweenRoundingDownAndTheBestCombination, ()) {
  ShrinkingDice dice;
  const LimitedSite limited = testing::random_site(dice, 4, 4, 5);
  const SiteObjective objective = any_objective(dice);
  const Allocation allocation = Allocator(limited.site, objective).allocate(limited.limits);
  const auto best = testing::best_combination(limited, objective);
  RC_ASSERT(best.has_value() == !std::isnan(allocation.bound));
  if (!best) return;
  const double size = std::max(1.0, std::abs(*best));
  RC_ASSERT(allocation.value <= *best + 1e-9 * size);
  RC_ASSERT(*best <= allocation.bound + 1e-9 * size);
  if (objective == SiteObjective::max_min) RC_ASSERT(allocation.value >= *best - 1e-12);
}

RC_GTEST_PROP(AllocateProperty, MoreWattsForTheSiteSlowNoJobUnderMaxMin, ()) {
  ShrinkingDice dice;
  LimitedSite limited = testing::random_site(dice, 5, 8, 8);
  Allocator allocator(limited.site, SiteObjective::max_min);
  const std::vector<double> before = rates_of(limited.site, allocator.allocate(limited.limits));
  limited.limits[0] += Watts(10.0 * dice.roll(0, 50));
  const std::vector<double> after = rates_of(limited.site, allocator.allocate(limited.limits));
  for (std::size_t j = 0; j < before.size(); ++j) RC_ASSERT(after[j] >= before[j]);
}

RC_GTEST_PROP(AllocateProperty, AChangedLimitAgreesWithANewAllocator, ()) {
  ShrinkingDice dice;
  LimitedSite limited = testing::random_site(dice, 8, 12, any_points(dice));
  const SiteObjective objective = any_objective(dice);
  Allocator kept(limited.site, objective);
  for (int change = 0; change < 4; ++change) {
    const int domain = dice.roll(0, static_cast<int>(limited.limits.size()) - 1);
    limited.limits[domain] = dice.one_in(3) ? model::kNoLimit : Watts(10.0 * dice.roll(0, 200));
    const Allocation again = kept.allocate(limited.limits);
    const Allocation fresh = Allocator(limited.site, objective).allocate(limited.limits);
    RC_ASSERT(again.chosen == fresh.chosen);
    RC_ASSERT(again.price == fresh.price);
  }
}

RC_GTEST_PROP(AllocateProperty, ScaledWattsAndReorderedJobsHaveTheSameBound, ()) {
  ShrinkingDice dice;
  const LimitedSite limited = testing::random_site(dice, 5, 8, 8);
  const SiteObjective objective = dice.one_in(2) ? SiteObjective::throughput : SiteObjective::slowdown;
  const double bound = Allocator(limited.site, objective).allocate(limited.limits).bound;
  LimitedSite other = limited;
  const double factor = dice.roll(1, 1000) / 7.0;
  for (Watts& limit : other.limits) limit = factor * limit;
  for (model::SiteJob& job : other.site.jobs) {
    for (model::PowerPoint& point : job.curve.points) point.power = factor * point.power;
  }
  std::ranges::reverse(other.site.jobs);
  const double scaled = Allocator(other.site, objective).allocate(other.limits).bound;
  RC_ASSERT(std::isnan(bound) == std::isnan(scaled));
  if (!std::isnan(bound)) RC_ASSERT(std::abs(bound - scaled) <= 1e-9 * std::max(1.0, std::abs(bound)));
}

RC_GTEST_PROP(AllocateProperty, AGreaterWeightNeverLowersTheContinuousRateOfAJob, ()) {
  // Of one point each this does not hold, so the property is that of the bound: it grows by at most the change in
  // weight times full speed, and by at least the change times the job's rate.
  ShrinkingDice dice;
  LimitedSite limited = testing::random_site(dice, 5, 8, 8);
  const double before = Allocator(limited.site, SiteObjective::throughput).allocate(limited.limits).bound;
  const int job = dice.roll(0, static_cast<int>(limited.site.jobs.size()) - 1);
  limited.site.jobs[job].weight += 1;
  const double after = Allocator(limited.site, SiteObjective::throughput).allocate(limited.limits).bound;
  if (std::isnan(before)) return;
  RC_ASSERT(after >= before - 1e-9 * before);
  RC_ASSERT(after <= before + 1 + 1e-9 * before);
}

}  // namespace
}  // namespace perseus::site
