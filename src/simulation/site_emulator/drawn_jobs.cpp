#include "simulation/site_emulator/drawn_jobs.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace perseus::site_emulator {

double DayDice::uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

double DayDice::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::vector<double> draw_places(const SiteDay& day) {
  DayDice dice(day.seed);
  std::vector<double> places(day.kind_of.size());
  std::ranges::generate(places, [&] { return dice.uniform(); });
  return places;
}

std::vector<double> draw_factors(const SiteDay& day) {
  DayDice dice(day.seed ^ 0x9e3779b97f4a7c15U);
  std::vector<double> factors(day.kind_of.size());
  std::ranges::generate(factors, [&] { return std::max(0.1, 1 + day.draw_more + day.bias * dice.normal()); });
  return factors;
}

double draw_delay_s(const GrantDelay& delay, DayDice& dice) {
  return std::min(delay.most.value(), delay.median.value() * std::exp(delay.spread * dice.normal()));
}

}  // namespace perseus::site_emulator
