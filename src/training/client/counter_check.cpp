#include "training/client/counter_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace perseus::client {
namespace {

constexpr double kFirstWindow_s = 10, kWindow_s = 60, kStill_s = 10;
constexpr double kPowerInterval_s = 0.1, kLaterPowerInterval_s = 1;
constexpr double kAboveLimit = 1.5, kAbovePower = 4, kMostPower_w = 1e4;
constexpr double kLeastCounted_w = 1, kBelowPower = 0.05;  ///< no GPU that is on draws less
constexpr int kFewImpossible = 3;
constexpr double kImpossibleShare = 0.25;
constexpr double kRefusedRatio = 3, kDoubtedRatio = 1.3;

}  // namespace

void CounterCheck::limit(double watts) { highest_limit_w_ = std::max(highest_limit_w_, watts); }

double CounterCheck::most_w() const {
  if (of_module_) return kMostPower_w;
  if (highest_limit_w_ > 0) return kAboveLimit * highest_limit_w_;
  return highest_power_w_ > 0 ? kAbovePower * highest_power_w_ : kMostPower_w;
}

double CounterCheck::least_w() const { return std::max(kLeastCounted_w, kBelowPower * power_w_); }

void CounterCheck::counter(double at_s, double energy_j) {
  if (window_.from_s < 0) window_.from_s = at_s;
  if (!std::exchange(known_, true)) {
    last_j_ = energy_j;
    step_s_ = before_step_s_ = last_at_s_ = at_s;
    stepped_ = false;
    since_step_j_ = 0;
    return;
  }
  const double gained_j = energy_j - last_j_;
  if (gained_j != 0) {
    if (std::exchange(stepped_, true)) {  // the first step began before the first reading
      ++window_.steps;
      if (gained_j < 0 || gained_j > most_w() * (at_s - before_step_s_)) {
        ++window_.impossible;
      } else {
        window_.gained_j += gained_j;
        window_.took_s += at_s - step_s_;
        window_.integrated_j += since_step_j_;
      }
    }
    since_step_j_ = 0;
    step_s_ = at_s;
    before_step_s_ = last_at_s_;
    last_j_ = energy_j;
  }
  last_at_s_ = at_s;
}

void CounterCheck::power(double at_s, double watts) {
  // Multiples of the golden ratio spread over the interval.
  const double share = std::fmod(0.618034 * ++powers_, 1.0);
  next_power_s_ = at_s + (windows_ > 0 ? kLaterPowerInterval_s : kPowerInterval_s) * (0.5 + share);
  if (!(watts > 0)) {
    power_w_ = 0;
    window_.has_power = false;
    return;
  }
  if (power_w_ > 0) since_step_j_ += (power_w_ + watts) / 2 * (at_s - power_at_s_);
  power_w_ = watts;
  power_at_s_ = at_s;
  highest_power_w_ = std::max(highest_power_w_, watts);
}

bool CounterCheck::judge(double now_s) {
  if (!known_ || window_.from_s < 0) return false;
  const double took_s = now_s - window_.from_s;
  const bool still = now_s - step_s_ >= kStill_s;
  if (!still && took_s < (windows_ == 0 ? kFirstWindow_s : kWindow_s)) return false;
  Judgment now =
      still
          ? Judgment{true, fmt::format("the energy counter does not move: {} J for {:.0f} s", last_j_, now_s - step_s_)}
          : judged(window_, took_s);
  window_ = {};
  window_.from_s = now_s;
  ++windows_;
  if (still && refused_) return false;  // said already, with other seconds
  const bool changed = now.refused != refused_ || now.wrong.empty() != wrong_.empty();
  refused_ = now.refused;
  wrong_ = std::move(now.wrong);
  return changed;
}

CounterCheck::Judgment CounterCheck::judged(const Window& window, double took_s) const {
  if (window.impossible >= kFewImpossible && window.impossible >= kImpossibleShare * window.steps) {
    return {true,
            fmt::format("{} of {} steps of the energy counter in {:.0f} s were impossible; allowed: 0 to {:.0f} W",
                        window.impossible, window.steps, took_s, most_w())};
  }
  if (window.took_s <= 0) return {refused_, wrong_};
  const double counted_w = window.gained_j / window.took_s;
  if (counted_w < kLeastCounted_w) {
    return {true, fmt::format("the energy counter shows {:.2g} W; allowed: at least {} W", counted_w, kLeastCounted_w)};
  }
  const double ratio = window.has_power && window.integrated_j > 0 ? window.gained_j / window.integrated_j : 1;
  if (ratio > kRefusedRatio || ratio < 1 / kRefusedRatio) {
    return {true, fmt::format("the energy counter shows {:.2g} times what the power sensor does", ratio)};
  }
  if (window.impossible > 0) {
    return {false,
            fmt::format("{} of {} steps of the energy counter in {:.0f} s were impossible (allowed: 0 to {:.0f} W) "
                        "and are left out",
                        window.impossible, window.steps, took_s, most_w())};
  }
  if (ratio > kDoubtedRatio || ratio < 1 / kDoubtedRatio) {
    return {false,
            fmt::format("the energy counter shows {:.2f} times what the power sensor does: one of them is wrong, "
                        "and energies may be by this factor",
                        ratio)};
  }
  return {};
}

}  // namespace perseus::client
