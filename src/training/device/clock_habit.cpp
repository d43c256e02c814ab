#include "training/device/clock_habit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace perseus::device {
namespace {

constexpr std::size_t kKept = 16;
constexpr int kHabit = 3;  ///< times
constexpr int kLeastNear_mhz = 8, kMostNear_mhz = 40;

/// 2.5 times the smallest step.
int near_of(const std::vector<int>& clocks_mhz) {
  int step_mhz = kMostNear_mhz;
  for (std::size_t i = 1; i < clocks_mhz.size(); ++i) step_mhz = std::min(step_mhz, clocks_mhz[i - 1] - clocks_mhz[i]);
  return std::clamp(5 * step_mhz / 2, kLeastNear_mhz, kMostNear_mhz);
}

}  // namespace

ClockHabit::ClockHabit(const std::vector<int>& clocks_mhz) : near_mhz_(near_of(clocks_mhz)) {}

bool ClockHabit::is_habit(int set_mhz, int ran_mhz) const {
  const auto times = std::ranges::count_if(deviations_, [&](const Deviation& other) {
    return std::abs(other.ran_mhz - ran_mhz) <= kLeastNear_mhz ||
           std::abs((other.set_mhz - other.ran_mhz) - (set_mhz - ran_mhz)) <= kLeastNear_mhz;
  });
  return times >= kHabit && 3 * times >= 2 * std::ssize(deviations_);
}

bool ClockHabit::is_usual(int set_mhz, int ran_mhz) const {
  if (std::abs(set_mhz - ran_mhz) <= near_mhz_) return true;
  return ran_mhz < set_mhz && is_habit(set_mhz, ran_mhz);
}

bool ClockHabit::learn(int set_mhz, int ran_mhz) {
  if (std::abs(set_mhz - ran_mhz) <= near_mhz_) return true;
  if (ran_mhz > set_mhz) return false;
  deviations_.push_back({set_mhz, ran_mhz});
  if (deviations_.size() > kKept) deviations_.pop_front();
  if (!is_habit(set_mhz, ran_mhz)) return false;
  if (!std::exchange(remarked_, true)) {
    remark_ = fmt::format(
        "the GPU runs at {} MHz where {} MHz is set, and the driver gives no reason: measurements at "
        "that clock are those of the clock that runs",
        ran_mhz, set_mhz);
  }
  return true;
}

std::optional<std::string> ClockHabit::take_remark() { return std::exchange(remark_, std::nullopt); }

}  // namespace perseus::device
