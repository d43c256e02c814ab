// Profiles without noise: smooth, with steps, with limits, rounded; of 1 to 200 clocks. Pooling changes none of them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "oracles/dice.h"
#include "server/profiling/pooled_profile.h"

namespace perseus::profiling {
namespace {

using testing::Dice;
using testing::ShrinkingDice;

model::Profile random_exact_profile(Dice& dice) {
  const int stages = dice.roll(1, 8), clocks = dice.one_in(3) ? dice.roll(1, 8) : dice.roll(1, 200);
  const int step_mhz = std::max(1, dice.roll(200, 1500) / clocks);
  const double steady = dice.real(0, 0.5), idle_w = dice.real(20, 150), more_w = dice.real(50, 600);
  const double power = dice.real(1.5, 3.5);
  const int cap = dice.one_in(3) ? dice.roll(0, clocks) : 0;  // above it, clocks are no faster
  const double rounded_s = dice.one_in(4) ? std::pow(0.1, dice.roll(3, 5)) : 0;
  std::vector<double> shared(clocks, 1), own(clocks, 1);
  const auto add_steps = [&](std::vector<double>& factors) {
    for (int steps = dice.roll(0, std::min(4, clocks / 8)); steps > 0; --steps) {
      const double factor = 1 + dice.real(-0.03, 0.03);
      for (int i = dice.roll(0, clocks); i < clocks; ++i) factors[i] *= factor;
    }
  };
  if (dice.one_in(2)) add_steps(shared);
  const bool own_steps = dice.one_in(3);
  model::Profile profile;
  profile.accelerators.assign(static_cast<std::size_t>(stages), 1);
  for (int stage = 0; stage < stages; ++stage) {
    const double work_s = 0.04 * dice.real(0.8, 1.2);
    if (own_steps) add_steps(own);
    for (const auto& [instruction, share] : {std::pair{"forward", 1.0}, std::pair{"backward", 2.0}}) {
      model::ProfileEntry entry{stage, instruction, {}};
      for (int i = 0; i < clocks; ++i) {
        const int mhz = 2000 - i * step_mhz;
        if (mhz <= 0) break;
        const double clock = (2000.0 - std::max(i, cap) * step_mhz) / 2000;
        double time_s = share * work_s * (steady + (1 - steady) / std::max(clock, 0.02)) * shared[i] * own[i];
        if (rounded_s > 0) time_s = std::max(1.0, std::round(time_s / rounded_s)) * rounded_s;
        const double power_w = idle_w + more_w * std::pow(std::max(clock, 0.02), power);
        entry.measurements.push_back({Megahertz(mhz), Seconds(time_s), Joules(time_s * power_w), {}, {}, 1});
      }
      profile.entries.push_back(std::move(entry));
    }
  }
  return profile;
}

RC_GTEST_PROP(ExactProfile, IsNotPooled, ()) {
  ShrinkingDice dice;
  const model::Profile profile = random_exact_profile(dice);
  const PooledProfile pooled = pool(profile, std::nullopt, 2);
  RC_ASSERT(!pooled.changed);
  RC_ASSERT(pooled.draws.empty());
  for (std::size_t e = 0; e < profile.entries.size(); ++e) {
    for (std::size_t i = 0; i < profile.entries[e].measurements.size(); ++i) {
      const model::Measurement &before = profile.entries[e].measurements[i],
                               &after = pooled.profile.entries[e].measurements[i];
      RC_ASSERT(before.time == after.time);
      RC_ASSERT(before.energy == after.energy);
    }
  }
}

TEST(ExactProfile, OfTwoStagesAndFewClocksIsNotPooled) {
  model::Profile profile;
  profile.accelerators.assign(2, 1);
  for (const int stage : {0, 1}) {
    for (const auto& [instruction, time_s] : {std::pair{"forward", 0.032}, std::pair{"backward", 0.064}}) {
      model::ProfileEntry entry{stage, instruction, {}};
      for (int mhz = 2000; mhz > 900; mhz -= 211) {
        const double share = mhz / 2000.0, time = time_s / share, power_w = 49.12 + 88.5 * std::pow(share, 3.056);
        entry.measurements.push_back({Megahertz(mhz), Seconds(time), Joules(time * power_w), {}, {}, 1});
      }
      profile.entries.push_back(std::move(entry));
    }
  }
  EXPECT_FALSE(pool(profile, std::nullopt, 2).changed);
}

}  // namespace
}  // namespace perseus::profiling
