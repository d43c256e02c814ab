// Corrections of random reports: never outside their bounds, and near the truth in the end.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "oracles/dice.h"
#include "planning/site/power_correction.h"

namespace perseus::site {
namespace {

using testing::Dice;
using testing::ShrinkingDice;

/// Also what no meter and no GPU says.
double any_power(Dice& dice) {
  if (dice.one_in(8)) return std::nan("");
  if (dice.one_in(8)) return -dice.real(0, 1e6);
  return std::exp(dice.real(-20, 20));
}

RC_GTEST_PROP(PowerCorrectionProperty, NoReportMovesItOutOfItsBounds, ()) {
  ShrinkingDice dice;
  PowerCorrection job;
  MeterCorrection meter;
  double now_s = 0;
  for (int k = 0; k < 200; ++k) {
    now_s += dice.real(0, 400);
    const double planned = dice.one_in(2) ? 100 : any_power(dice);
    const double measured = dice.one_in(2) ? dice.real(40, 250) : any_power(dice);
    const double before = job.factor(), metered_before = meter.factor(Seconds(now_s));
    const bool changed = job.report(dice.real(0, 50), Joules(measured), Joules(planned));
    const bool metered = meter.read(Seconds(now_s), Watts(measured), Watts(planned));
    RC_ASSERT(changed == (job.factor() != before));
    RC_ASSERT(metered == (meter.factor(Seconds(now_s)) != metered_before));
    RC_ASSERT(job.factor() >= PowerCorrection::kLeast && job.factor() <= PowerCorrection::kMost);
    const double factor = meter.factor(Seconds(now_s));
    RC_ASSERT(factor >= MeterCorrection::kLeastMetered && factor <= MeterCorrection::kMost);
    RC_ASSERT(meter.factor(Seconds(now_s + 301)) >= 1);
  }
}

RC_GTEST_PROP(PowerCorrectionProperty, NoisyReportsConvergeAboveTheTruth, ()) {
  ShrinkingDice dice;
  const double truth = dice.real(0.85, 1.2), noise = dice.real(0, 0.05);
  PowerCorrection job;
  int changes = 0;
  for (int k = 0; k < 500; ++k) {
    const double ratio = truth * (1 + noise * dice.real(-1, 1));
    changes += job.report(1, Joules(100 * ratio), Joules(100)) && k > 100 ? 1 : 0;
  }
  // Smoothed over 20 reports; two standard errors and the dead band above that at most.
  const double counted = std::max(1.0, truth);
  RC_ASSERT(job.factor() > counted - 0.02 && job.factor() < counted + 0.06);
  RC_ASSERT(changes < 100);
}

}  // namespace
}  // namespace perseus::site
