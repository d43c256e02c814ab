// Guards of random jobs against their power, sampled.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "oracles/dice.h"
#include "planning/site/window_guard.h"

namespace perseus::site {
namespace {

using testing::Dice;
using testing::ShrinkingDice;

struct Period {
  std::vector<PowerStep> steps;
  double length_s = 0;
};

Period random_period(Dice& dice) {
  Period period;
  const int steps = dice.roll(1, 12);
  for (int k = 0; k < steps; ++k) {
    period.steps.push_back({Seconds(period.length_s), Watts(dice.real(50, 400))});
    period.length_s += dice.real(0.01, 3);
  }
  return period;
}

/// Energy from 0 to a time, by adding up.
double energy_j(const Period& period, double time_s) {
  double energy = 0;
  for (double begin_s = 0; begin_s < time_s; begin_s += period.length_s) {
    for (std::size_t k = 0; k < period.steps.size(); ++k) {
      const double from = begin_s + period.steps[k].from.value();
      const double until =
          k + 1 < period.steps.size() ? begin_s + period.steps[k + 1].from.value() : begin_s + period.length_s;
      if (from < time_s) energy += period.steps[k].power.value() * (std::min(until, time_s) - from);
    }
  }
  return energy;
}

/// Mean power over a part, less the period's mean; over the window's length.
double deviation_w(const Period& period, double place_s, double part_s, double window_s) {
  const double mean_w = energy_j(period, period.length_s) / period.length_s;
  return (energy_j(period, place_s + part_s) - energy_j(period, place_s) - mean_w * part_s) / window_s;
}

RC_GTEST_PROP(WindowGuardProperty, NoPartOfAWindowDeviatesMore, ()) {
  ShrinkingDice dice;
  const Period period = random_period(dice);
  const double window_s = dice.real(0.05, 20);
  const WindowSwing swing = window_swing(period.steps, Seconds(period.length_s), Seconds(window_s));
  constexpr int kPlaces = 200;
  const double part_s = dice.real(0.01, 1) * window_s;
  double squares = 0;
  for (int k = 0; k < kPlaces; ++k) {
    const double place_s = period.length_s * k / kPlaces;
    const double above = deviation_w(period, place_s, part_s, window_s);
    RC_ASSERT(above <= swing.above.value() * (1 + 1e-9) + 1e-9);
    squares += above * above / kPlaces;
  }
  RC_ASSERT(squares <= swing.variance_w2 * 1.2 + 1e-6);  // sampled at places that may favor steps
}

RC_GTEST_PROP(WindowGuardProperty, UnrelatedJobsStayBelowTheGuard, ()) {
  ShrinkingDice dice;
  const double window_s = dice.real(0.1, 10);
  const int jobs = dice.roll(1, 60);
  std::vector<Period> periods;
  SwingSum sum;
  for (int j = 0; j < jobs; ++j) {
    periods.push_back(random_period(dice));
    sum.add(window_swing(periods.back().steps, Seconds(periods.back().length_s), Seconds(window_s)));
  }
  const double guard_w = window_guard(sum).value();
  RC_ASSERT(guard_w <= sum.above.value() * (1 + 1e-12));
  for (int trial = 0; trial < 20; ++trial) {
    double total_w = 0;
    for (const Period& period : periods) {
      total_w += deviation_w(period, dice.real(0, 1) * period.length_s, window_s, window_s);
    }
    RC_ASSERT(total_w <= guard_w * (1 + 1e-9) + 1e-9);
  }
}

}  // namespace
}  // namespace perseus::site
