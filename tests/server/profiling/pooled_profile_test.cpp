#include "server/profiling/pooled_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "server/profiling/curve_family.h"

namespace perseus::profiling {
namespace {

/// Stages whose work differs by up to a fifth; above 1300 MHz a power cap limits the clock: times stay equal.
model::Profile throttled_truth(int stages) {
  model::Profile profile;
  profile.accelerators.assign(static_cast<std::size_t>(stages), 1);
  for (int stage = 0; stage < stages; ++stage) {
    for (const auto& [instruction, work] : {std::pair{"forward", 40.0}, std::pair{"backward", 80.0}}) {
      model::ProfileEntry entry{stage, instruction, {}};
      for (int mhz = 1410; mhz >= 810; mhz -= 15) {
        const double clock = std::min(mhz, 1300), scale = work * (1 + 0.2 * stage / stages);
        const double time_s = scale * (0.2 / 1300 + 0.8 / clock), power_w = 90 + 250 * std::pow(clock / 1410, 2.4);
        entry.measurements.push_back({Megahertz(mhz), Seconds(time_s), Joules(time_s * power_w), {}, {}, 1});
      }
      profile.entries.push_back(std::move(entry));
    }
  }
  return profile;
}

model::Profile with_noise(model::Profile profile, double noise, int samples, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  for (model::ProfileEntry& entry : profile.entries) {
    for (model::Measurement& m : entry.measurements) {
      const double of_mean = noise / std::sqrt(samples);
      m.time = m.time * (1 + of_mean * standard_normal(engine));
      m.energy = m.energy * (1 + of_mean * standard_normal(engine));
      m.samples = samples;
      if (samples > 1) m.time_stddev = m.time * noise, m.energy_stddev = m.energy * noise;
    }
  }
  return profile;
}

/// Root of the mean square of the relative errors of times.
double time_error(const model::Profile& profile, const model::Profile& truth) {
  double squares = 0, count = 0;
  for (std::size_t e = 0; e < truth.entries.size(); ++e) {
    for (std::size_t i = 0; i < truth.entries[e].measurements.size(); ++i, ++count) {
      squares += std::pow(profile.entries[e].measurements[i].time / truth.entries[e].measurements[i].time - 1, 2);
    }
  }
  return std::sqrt(squares / count);
}

bool same(const model::Profile& a, const model::Profile& b) {
  for (std::size_t e = 0; e < a.entries.size(); ++e) {
    for (std::size_t i = 0; i < a.entries[e].measurements.size(); ++i) {
      const model::Measurement &x = a.entries[e].measurements[i], &y = b.entries[e].measurements[i];
      if (x.time != y.time || x.energy != y.energy || x.clock != y.clock) return false;
    }
  }
  return a.entries.size() == b.entries.size();
}

TEST(PooledProfile, WithoutNoiseNothingChanges) {
  const model::Profile truth = throttled_truth(8);
  const PooledProfile pooled = pool(truth, std::nullopt, 4);
  EXPECT_FALSE(pooled.changed);
  EXPECT_TRUE(same(pooled.profile, truth));
  EXPECT_TRUE(pooled.draws.empty());
}

TEST(PooledProfile, ManySamplesAreNotShrunk) {
  const model::Profile measured = with_noise(throttled_truth(8), 0.02, 1000, 3);
  EXPECT_TRUE(same(pool(measured).profile, measured));
}

TEST(PooledProfile, FindsTheNoiseAndKeepsTheStepOfAPowerCap) {
  const model::Profile truth = throttled_truth(8);
  for (const double noise : {0.01, 0.03}) {
    const model::Profile measured = with_noise(truth, noise, 1, 5);
    const PooledProfile pooled = pool(measured);
    EXPECT_TRUE(pooled.changed);
    EXPECT_NEAR(pooled.time_noise / noise, 1, 0.3);
    EXPECT_LT(time_error(pooled.profile, truth), 0.4 * time_error(measured, truth));
    // Above the cap: as fast as at 1305 MHz, and not 6 % faster, as a curve through the lower clocks would predict.
    for (const model::ProfileEntry& entry : pooled.profile.entries) {
      const double highest = entry.measurements.front().time.value(), at_cap = entry.measurements[7].time.value();
      EXPECT_NEAR(highest / at_cap, 1, noise) << entry.stage << entry.instruction;
    }
  }
}

// A curve is biased at its end; the reference of savings must not be.
TEST(PooledProfile, TheEnergyOfEverythingAtTheHighestClockIsTheMeasuredOne) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const model::Profile measured = with_noise(throttled_truth(8), 0.01, 1, seed);
    const PooledProfile pooled = pool(measured, std::nullopt, 2);
    ASSERT_TRUE(pooled.changed);
    for (const std::string instruction : {"forward", "backward"}) {
      const auto sum = [&](const model::Profile& profile, std::size_t clock) {
        double sum_j = 0;
        for (const model::ProfileEntry& entry : profile.entries) {
          if (entry.instruction == instruction) sum_j += entry.measurements[clock].energy.value();
        }
        return sum_j;
      };
      EXPECT_NEAR(sum(pooled.profile, 0) / sum(measured, 0), 1, 1e-12) << seed << instruction;
      EXPECT_GT(std::abs(sum(pooled.profile, 1) / sum(measured, 1) - 1), 1e-9) << "other clocks are pooled";
    }
  }
}

// A clock that is chosen because it looks best needs more than it seems to.
TEST(PooledProfile, ChosenClocksNeedWhatTheyClaim) {
  constexpr double noise = 0.02;
  const model::Profile truth = throttled_truth(4);
  double sum = 0, count = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const model::Profile profile = pool(with_noise(truth, noise, 1, seed)).profile;
    for (std::size_t e = 0; e < truth.entries.size(); ++e) {
      const auto& claimed = profile.entries[e].measurements;
      for (const double price_w : {100, 150, 200, 250, 300}) {
        const auto cost = [&](const model::Measurement& m) { return (m.energy + Watts(price_w) * m.time).value(); };
        const auto chosen = std::ranges::min_element(claimed, {}, cost);
        const auto& real = truth.entries[e].measurements[static_cast<std::size_t>(chosen - claimed.begin())];
        sum += std::log(real.energy / chosen->energy), ++count;
      }
    }
  }
  EXPECT_LT(sum / count, 0.25 * noise);  // without a correction 0.38
}

TEST(PooledProfile, SeesThreePerMilleOfNoiseOnDenseClocksOnly) {
  const model::Profile truth = throttled_truth(8), measured = with_noise(truth, 0.003, 1, 5);
  const PooledProfile pooled = pool(measured);
  EXPECT_TRUE(pooled.changed);
  EXPECT_NEAR(pooled.time_noise / 0.003, 1, 0.3);
  EXPECT_LT(time_error(pooled.profile, truth), 0.6 * time_error(measured, truth));

  model::Profile few = with_noise(truth, 0.0027, 1, 5);
  for (model::ProfileEntry& entry : few.entries) entry.measurements.resize(kManyClocks - 1);
  const PooledProfile as_it_is = pool(few);
  EXPECT_GT(as_it_is.time_noise, kLeastEstimatedNoise);
  EXPECT_LT(time_error(as_it_is.profile, few), 1e-12);
}

TEST(PooledProfile, DrawsAreMirroredAtTheProfile) {
  const PooledProfile pooled = pool(with_noise(throttled_truth(4), 0.01, 1, 17), std::nullopt, 6);
  ASSERT_EQ(pooled.draws.size(), 6U);
  for (std::size_t d = 0; d < pooled.draws.size(); d += 2) {
    for (std::size_t e = 0; e < pooled.profile.entries.size(); ++e) {
      for (std::size_t i = 0; i < pooled.profile.entries[e].measurements.size(); ++i) {
        const auto at = [&](const model::Profile& p) { return p.entries[e].measurements[i].time.value(); };
        const double mean = at(pooled.profile);
        EXPECT_NEAR(at(pooled.draws[d]) * at(pooled.draws[d + 1]) / (mean * mean), 1, 1e-9);
      }
    }
  }
}

// Energies are measured by themselves: a time that is off makes no energy so.
TEST(PooledProfile, ADrawsEnergiesDoNotFollowItsTimes) {
  const PooledProfile pooled = pool(with_noise(throttled_truth(4), 0.01, 1, 17), std::nullopt, 32);
  double times = 0, energies = 0, both = 0;
  for (const model::Profile& draw : pooled.draws) {
    for (std::size_t e = 0; e < draw.entries.size(); ++e) {
      for (std::size_t i = 0; i < draw.entries[e].measurements.size(); ++i) {
        const model::Measurement &drawn = draw.entries[e].measurements[i],
                                 &mean = pooled.profile.entries[e].measurements[i];
        const double time = std::log(drawn.time / mean.time), energy = std::log(drawn.energy / mean.energy);
        times += time * time, energies += energy * energy, both += time * energy;
      }
    }
  }
  EXPECT_LT(std::abs(both) / std::sqrt(times * energies), 0.2);
}

TEST(PooledProfile, EstimatesNoiseFromRepeats) {
  const model::Profile truth = throttled_truth(4), measured = with_noise(truth, 0.02, 3, 7);
  const PooledProfile pooled = pool(measured);
  EXPECT_NEAR(pooled.time_noise, 0.02, 1e-3);
  EXPECT_LT(time_error(pooled.profile, truth), 0.5 * time_error(measured, truth));
}

TEST(PooledProfile, DrawsHoldTheTruth) {
  const model::Profile truth = throttled_truth(8), measured = with_noise(truth, 0.01, 1, 11);
  constexpr int draws = 200;
  const PooledProfile pooled = pool(measured, std::nullopt, draws);
  ASSERT_EQ(pooled.draws.size(), static_cast<std::size_t>(draws));
  int inside = 0, count = 0;
  for (std::size_t e = 0; e < truth.entries.size(); ++e) {
    for (std::size_t i = 0; i < truth.entries[e].measurements.size(); ++i, ++count) {
      const Seconds real = truth.entries[e].measurements[i].time;
      const auto below = std::ranges::count_if(
          pooled.draws, [&](const model::Profile& draw) { return draw.entries[e].measurements[i].time < real; });
      inside += below >= draws / 20 && below <= draws - draws / 20;
    }
  }
  EXPECT_GT(inside, 0.75 * count);
}

TEST(PooledProfile, ConstantTimesAndFewClocksStay) {
  model::Profile profile = with_noise(throttled_truth(2), 0.02, 1, 13);
  profile.entries.push_back({0, "load", {{Megahertz(0), Seconds(0.1), Joules(3), {}, {}, 1}}});
  model::ProfileEntry few{1, "recompute", {profile.entries[0].measurements[0], profile.entries[0].measurements[1]}};
  profile.entries.push_back(few);
  const PooledProfile pooled = pool(profile);
  EXPECT_TRUE(pooled.changed);
  EXPECT_EQ(pooled.profile.entries[4].measurements[0].time, Seconds(0.1));
  EXPECT_EQ(pooled.profile.entries[5].measurements[1].time, few.measurements[1].time);
}

}  // namespace
}  // namespace perseus::profiling
