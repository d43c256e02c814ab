#include "server/profiling/scaled_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/simulated_profile.h"

namespace perseus::profiling {
namespace {

model::Profile profile_before() { return testing::invented_profile({.stages = 2, .clocks = 6}, 3); }

/// All clocks are measured, to 0.2 %.
ProfileEstimate measured(model::Profile profile) {
  ProfileEstimate estimate;
  for (model::ProfileEntry& entry : profile.entries) {
    for (model::Measurement& one : entry.measurements) {
      one.time_stddev = 0.002 * one.time;
      one.energy_stddev = 0.002 * one.energy;
    }
    estimate.sources.emplace_back(entry.measurements.size(), ProfileSource::measured);
  }
  estimate.profile = std::move(profile);
  return estimate;
}

/// The backward of stage 1 changes by these factors, by clock.
ProfileEstimate changed(const std::function<double(int)>& times, double power = 1) {
  model::Profile profile = profile_before();
  int clock = 0;
  for (model::Measurement& one : profile.entries.back().measurements) {
    const double factor = times(clock++);
    one.time = one.time * factor;
    one.energy = one.energy * (factor * power);
  }
  return measured(std::move(profile));
}

TEST(ScaledProfile, OneFactorScalesAllClocksOfItsEntryAlone) {
  ProfileEstimate now = changed([](int) { return 1.4; });
  now.sources.back() = {ProfileSource::measured,     ProfileSource::interpolated, ProfileSource::measured,
                        ProfileSource::interpolated, ProfileSource::extrapolated, ProfileSource::extrapolated};
  for (std::size_t c : {1, 3, 4, 5}) now.profile.entries.back().measurements[c].time = Seconds(99);
  const auto scaled = scaled_profile(profile_before(), now);
  ASSERT_TRUE(scaled);
  EXPECT_THAT(scaled->text, ::testing::HasSubstr("1 of 4 computations deviate"));
  EXPECT_THAT(scaled->text, ::testing::HasSubstr("backward of stage 1 takes 1.4 times as long"));
  const model::Profile before = profile_before();
  for (std::size_t e = 0; e < before.entries.size(); ++e) {
    const double factor = e + 1 == before.entries.size() ? 1.4 : 1;
    for (std::size_t c = 0; c < 6; ++c) {
      const model::Measurement& was = before.entries[e].measurements[c];
      EXPECT_NEAR(scaled->profile.entries[e].measurements[c].time / was.time, factor, 1e-9);
      EXPECT_NEAR(scaled->profile.entries[e].measurements[c].energy / was.energy, factor, 1e-9);
    }
  }
}

TEST(ScaledProfile, APowerOfItsOwnScalesEnergiesUnlessOnlyIterationsHaveThem) {
  ProfileEstimate now = changed([](int) { return 1.4; }, 1.2);
  const auto energy = [&](const ProfileEstimate& estimate) {
    const auto scaled = scaled_profile(profile_before(), estimate);
    return scaled->profile.entries.back().measurements[3].energy /
           profile_before().entries.back().measurements[3].energy;
  };
  EXPECT_NEAR(energy(now), 1.4 * 1.2, 1e-9);
  now.energies_by_iteration = true;  // the split between computations is not known
  EXPECT_NEAR(energy(now), 1.4, 1e-9);
}

TEST(ScaledProfile, NothingWhereNoneDeviatesOrOneDoesByClock) {
  EXPECT_FALSE(scaled_profile(profile_before(), measured(profile_before())));
  EXPECT_FALSE(scaled_profile(profile_before(), changed([](int) { return 1.005; })));
  EXPECT_FALSE(scaled_profile(profile_before(), changed([](int clock) { return 1.4 - 0.05 * clock; })));
  EXPECT_FALSE(scaled_profile(profile_before(), changed([](int clock) { return clock == 5 ? 1.1 : 1; })));
}

TEST(ScaledProfile, NothingWhereTheProfilesDoNotMatchOrAnEntryIsNotMeasured) {
  const ProfileEstimate now = changed([](int) { return 1.4; });
  model::Profile other = profile_before();
  other.entries.back().instruction = "backward_weight";
  EXPECT_FALSE(scaled_profile(other, now));
  other = profile_before();
  other.accelerators = {1, 2};
  EXPECT_FALSE(scaled_profile(other, now));
  other = profile_before();
  for (model::Measurement& one : other.entries.front().measurements) one.clock = Megahertz(one.clock.value() + 7);
  EXPECT_FALSE(scaled_profile(other, now)) << "of other clocks";
}

}  // namespace
}  // namespace perseus::profiling
