#include "planning/model/profile_doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "io/formats/profile_csv.h"
#include "tests/support/shared_data.h"

namespace perseus::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two stages at two clocks: plausible if all factors are 1.
Profile profile_of(double clock_factor, double time_factor, double energy_factor) {
  Profile profile{{}, {1, 1}};
  for (int stage = 0; stage < 2; ++stage) {
    for (const char* instruction : {"forward", "backward"}) {
      ProfileEntry entry{stage, instruction, {}};
      for (const int mhz : {1410, 1200}) {
        const double time_s = 70.0 / mhz;
        Measurement& m = entry.measurements.emplace_back();
        m.clock = Megahertz(static_cast<int>(mhz * clock_factor));
        m.time = Seconds(time_s * time_factor);
        m.energy = Joules(250 * time_s * energy_factor);
      }
      profile.entries.push_back(std::move(entry));
    }
  }
  return profile;
}

TEST(ProfileDoubts, APlausibleProfileHasNone) {
  EXPECT_THAT(profile_doubts(profile_of(1, 1, 1), Watts(80)), IsEmpty());
}

TEST(ProfileDoubts, ClocksInKilohertz) {
  EXPECT_THAT(
      profile_doubts(profile_of(1000, 1, 1), {}),
      ElementsAre("stage 0, forward, 1410000 MHz (and 7 more): no GPU has a clock above 5000 MHz; are the clocks in "
                  "kHz or Hz? They must be in MHz"));
}

TEST(ProfileDoubts, MillisecondsAndMillijoulesTogether) {
  EXPECT_THAT(
      profile_doubts(profile_of(1, 1000, 1000), Watts(80)),
      ElementsAre(HasSubstr("stage 0, forward, 1410 MHz: 49.65 s (and 7 more): every computation takes over 10 s; "
                            "are the times in ms and the energies in mJ?")));
  EXPECT_THAT(profile_doubts(profile_of(1, 1000, 1), {}), ElementsAre(HasSubstr("are the times in ms?")))
      << "one sentence for one mistake";
  EXPECT_THAT(profile_doubts(profile_of(1, 100, 100), Watts(80)), IsEmpty()) << "5 s: slow, but possible";
}

TEST(ProfileDoubts, AStageThatComputesForMicrosecondsIsNoWrongUnit) {
  Profile profile = profile_of(1, 1, 1);
  for (Measurement& m : profile.entries.front().measurements) {
    m.time = Seconds(20e-6);
    m.energy = Joules(0);
  }
  EXPECT_THAT(profile_doubts(profile, {}), IsEmpty());
}

TEST(ProfileDoubts, AStageWithoutTheHighestClockHidesWhatMaximumClockIs) {
  Profile profile = profile_of(1, 1, 1);
  for (ProfileEntry& entry : profile.entries) {
    if (entry.stage == 1) entry.measurements.erase(entry.measurements.begin());
  }
  EXPECT_THAT(profile_doubts(profile, {}),
              ElementsAre(HasSubstr("stage 1, forward, 1200 MHz (and 1 more): its highest clock, below the 1410 MHz of "
                                    "others: plans take it for maximum clock")));
}

TEST(ProfileDoubts, NoPublishedProfileHasAWrongUnit) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  int profiles = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(data)) {
    const std::string name = file.path().filename().string();
    const bool is_profile =
        name.find(".profile") != std::string::npos || file.path().parent_path().filename() == "stage_profile";
    if (!file.is_regular_file() || !is_profile) continue;
    Result<Profile> read = formats::read_profile_csv(file.path().string());
    if (!read) continue;  // one lacks the forward of a stage
    Profile profile = *std::move(read);
    for (const std::string& doubt : profile_doubts(profile, {}))
      EXPECT_THAT(doubt, HasSubstr("slower at a higher")) << name;
    for (ProfileEntry& entry : profile.entries) {
      for (Measurement& m : entry.measurements) {
        m.time = 1000 * m.time;
        m.energy = 1000 * m.energy;
      }
    }
    EXPECT_THAT(profile_doubts(profile, {}),
                ::testing::Contains(HasSubstr("are the times in ms and the energies in mJ")))
        << name;
    ++profiles;
  }
  EXPECT_GT(profiles, 5);
}

}  // namespace
}  // namespace perseus::model
