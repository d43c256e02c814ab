#include "planning/site/window_guard.h"

#include <algorithm>
#include <cmath>

#include "base/result.h"
#include "planning/model/site.h"

namespace perseus::site {
namespace {

constexpr int kMostRounds = 20;

double end_s(std::span<const PowerStep> period, std::size_t k, double length_s) {
  return k + 1 < period.size() ? period[k + 1].from.value() : length_s;
}

double mean_w(std::span<const PowerStep> period, double length_s) {
  double energy_j = 0;
  for (std::size_t k = 0; k < period.size(); ++k) {
    energy_j += period[k].power.value() * (end_s(period, k, length_s) - period[k].from.value());
  }
  return energy_j / length_s;
}

}  // namespace

WindowSwing window_swing(std::span<const PowerStep> period, Seconds length, Seconds window) {
  PERSEUS_CHECK(length > Seconds(0) && !period.empty(), "a period takes time");
  const double mean = mean_w(period, length.value());
  WindowSwing at_once;
  double above_j = 0, most_j = 0, least_j = 0, mean_j = 0, square_j2 = 0;
  for (std::size_t k = 0; k < period.size(); ++k) {
    const double above_w = period[k].power.value() - mean;
    const double lasts = end_s(period, k, length.value()) - period[k].from.value(), part = lasts / length.value();
    at_once.above = std::max(at_once.above, Watts(above_w));
    at_once.variance_w2 += above_w * above_w * part;
    const double before_j = above_j;
    above_j += above_w * lasts;
    most_j = std::max(most_j, above_j);
    least_j = std::min(least_j, above_j);
    mean_j += (before_j + above_j) / 2 * part;
    square_j2 += (before_j * before_j + before_j * above_j + above_j * above_j) / 3 * part;
  }
  if (window <= Seconds(0)) return at_once;
  const double variance_j2 = std::max(0.0, square_j2 - mean_j * mean_j);
  return {std::min(at_once.above, Joules(most_j - least_j) / window),
          std::min(at_once.variance_w2, 4 * variance_j2 / (window.value() * window.value()))};
}

WindowSwing operator*(double factor, const WindowSwing& swing) {
  return {factor * swing.above, factor * factor * swing.variance_w2};
}

void SwingSum::add(const WindowSwing& swing) {
  above += swing.above;
  greatest = std::max(greatest, swing.above);
  variance_w2 += swing.variance_w2;
}

SwingSum& SwingSum::operator+=(const SwingSum& others) {
  above += others.above;
  greatest = std::max(greatest, others.greatest);
  variance_w2 += others.variance_w2;
  return *this;
}

Watts window_guard(const SwingSum& jobs) {
  const double log_chance = -std::log(kGuardChance);
  const double linear = log_chance * jobs.greatest.value() / 3;
  const double bernstein = linear + std::sqrt(linear * linear + 2 * log_chance * jobs.variance_w2);
  return std::min(jobs.above, Watts(bernstein));
}

std::vector<Watts> settle_guards(std::span<const Watts> limits,
                                 const std::function<GuardedLoad(std::span<const Watts>)>& choose) {
  std::vector<Watts> guards(limits.size());
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<Watts> left;
    for (std::size_t d = 0; d < limits.size(); ++d) {
      left.push_back(limits[d] == model::kNoLimit ? limits[d] : std::max(Watts(0), limits[d] - guards[d]));
    }
    const GuardedLoad load = choose(left);
    bool enough = true;
    for (std::size_t d = 0; d < limits.size(); ++d) {
      if (limits[d] == model::kNoLimit || load.used[d] + load.guard[d] <= limits[d]) continue;
      // What exceeds the limit with the guard that was left already cannot be chosen lower.
      if (load.guard[d] <= guards[d]) continue;
      guards[d] = load.guard[d];
      enough = false;
    }
    if (enough) break;
  }
  return guards;
}

}  // namespace perseus::site
