#include "simulation/site_emulator/day_limits.h"

#include <algorithm>
#include <cmath>

#include "planning/site/site_limits.h"

namespace perseus::site_emulator {
namespace {

constexpr int kMostRampSteps = 10'000;

/// What a surprise allows: nothing is said before it begins.
Watts surprise_limit(const Surprise& surprise, Seconds ramp_step, Seconds reaction, Seconds time) {
  if (time < surprise.at + reaction) return model::kNoLimit;
  if (time < surprise.until) return surprise.limit;
  if (!surprise.up_w_per_s) return model::kNoLimit;
  const double steps = std::floor((time - surprise.until) / ramp_step + 1e-9);
  return surprise.limit + Watts(steps * *surprise.up_w_per_s * ramp_step.value());
}

Watts least_within(const std::vector<model::LimitStep>& steps, Seconds from, Seconds until) {
  Watts least = site::limit_at(steps, from);
  for (const model::LimitStep& step : steps) {
    if (step.from > from && step.from <= until) least = std::min(least, step.limit);
  }
  return least;
}

void add_times(const Surprise& surprise, const SiteDay& day, Seconds reaction, std::vector<Seconds>& times) {
  times.push_back(surprise.at + reaction);
  times.push_back(surprise.until);
  if (!surprise.up_w_per_s) return;
  // The rise ends at the latest at the highest announced limit.
  Watts highest;
  for (const model::LimitStep& step : day.timed.limits[surprise.domain]) {
    if (step.limit != model::kNoLimit) highest = std::max(highest, step.limit);
  }
  const double steps = (highest - surprise.limit).value() / (*surprise.up_w_per_s * day.ramp_step.value());
  for (int k = 1; k <= std::min(steps + 1, static_cast<double>(kMostRampSteps)); ++k) {
    times.push_back(surprise.until + static_cast<double>(k) * day.ramp_step);
  }
}

LimitSteps limits_of(const SiteDay& day, Seconds lead, Seconds reaction) {
  LimitSteps limits;
  for (std::size_t d = 0; d < day.timed.limits.size(); ++d) {
    const std::vector<model::LimitStep>& announced = day.timed.limits[d];
    std::vector<Seconds> times{Seconds(0)};
    for (const model::LimitStep& step : announced) {
      times.push_back(step.from);
      times.push_back(step.from - lead);
    }
    for (const Surprise& surprise : day.surprises) {
      if (surprise.domain == static_cast<int>(d)) add_times(surprise, day, reaction, times);
    }
    std::ranges::sort(times);
    times.erase(std::unique(times.begin(), times.end()), times.end());
    std::vector<model::LimitStep> steps;
    for (const Seconds time : times) {
      if (time < Seconds(0)) continue;
      Watts limit = least_within(announced, time, time + lead);
      for (const Surprise& surprise : day.surprises) {
        if (surprise.domain != static_cast<int>(d)) continue;
        limit = std::min(limit, surprise_limit(surprise, day.ramp_step, reaction, time));
      }
      if (steps.empty() || steps.back().limit != limit) steps.push_back({time, limit});
    }
    limits.push_back(std::move(steps));
  }
  return limits;
}

}  // namespace

LimitSteps planned_limits(const SiteDay& day, Seconds lead) { return limits_of(day, lead, Seconds(0)); }

LimitSteps due_limits(const SiteDay& day, Seconds reaction) { return limits_of(day, Seconds(0), reaction); }

std::vector<Seconds> change_times(const LimitSteps& limits, Seconds end) {
  std::vector<Seconds> times{Seconds(0)};
  for (const auto& steps : limits) {
    for (const model::LimitStep& step : steps) times.push_back(step.from);
  }
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  std::erase_if(times, [end](Seconds time) { return time >= end; });
  return times;
}

}  // namespace perseus::site_emulator
