#include "io/formats/profile_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/make_schedule.h"
#include "tests/support/shared_data.h"

namespace perseus::formats {
namespace {

using ::testing::HasSubstr;

const std::string header = "stage,instruction,frequency,time,energy\n";
const std::string good = header + "0,forward,1410,0.5,10\n0,forward,1200,0.6,8\n0,backward,1410,1,20\n";

std::string error_of(const std::string& text) {
  auto profile = parse_profile_csv(text, "p.csv");
  return profile ? "no error" : profile.error().message;
}

TEST(ProfileCsv, ReadsMeasurementsHighestClockFirst) {
  auto profile = parse_profile_csv(header + "0,backward,1410,1,20\n0,forward,1200,0.6,8\n0,forward,1410,0.5,10\n", "p");
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->num_stages(), 1);
  ASSERT_EQ(profile->entries.size(), 2u);
  EXPECT_EQ(profile->entries[0].instruction, "backward");  // first to appear
  const auto& forward = profile->entries[1].measurements;
  ASSERT_EQ(forward.size(), 2u);
  EXPECT_EQ(forward[0].clock, Megahertz(1410));
  EXPECT_EQ(forward[0].time, Seconds(0.5));
  EXPECT_EQ(forward[0].energy, Joules(10));
  EXPECT_EQ(forward[1].clock, Megahertz(1200));
  EXPECT_EQ(profile->accelerators, std::vector<int>{1});
}

TEST(ProfileCsv, TakesAnyColumnOrderQuotesCrlfByteOrderMarkAndBlankLines) {
  const auto profile = parse_profile_csv(
      "\xef\xbb\xbf\"energy\",note,frequency,stage,time,instruction\r\n\r\n"
      "10,\"a, \"\"b\"\"\n\",1410.0,0,0.5,\"forward\"\r\n , ,,\r\n20,,1410,0,1e0,backward",
      "p");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->find(0, "forward")->measurements[0].energy, Joules(10));
  EXPECT_EQ(profile->find(0, "backward")->measurements[0].time, Seconds(1));
}

TEST(ProfileCsv, AveragesRepeatedMeasurementsAndKeepsTheirSpread) {
  auto profile = parse_profile_csv(good + "0,backward,1410,2,26\n0,backward,1410,3,32\n", "p");
  ASSERT_TRUE(profile) << profile.error().message;
  const model::Measurement& m = profile->find(0, "backward")->measurements.at(0);
  EXPECT_DOUBLE_EQ(m.time.value(), 2);
  EXPECT_DOUBLE_EQ(m.time_stddev.value(), 1);
  EXPECT_DOUBLE_EQ(m.energy.value(), 26);
  EXPECT_DOUBLE_EQ(m.energy_stddev.value(), 6);
  EXPECT_EQ(m.samples, 3);
}

TEST(ProfileCsv, ReadsTheSpreadOfRowsThatAreMeans) {
  const std::string spread = "stage,instruction,frequency,time,energy,time_stddev,energy_stddev_j,samples\n";
  auto profile = parse_profile_csv(spread +
                                       "0,forward,1410,0.5,10,0.01,0.2,7\n0,backward,1410,1,20,nan,,\n"
                                       "0,backward,1200,2,30,1,0,2\n0,backward,1200,5,30,1,0,4\n",
                                   "p");
  ASSERT_TRUE(profile) << profile.error().message;
  const model::Measurement& forward = profile->find(0, "forward")->measurements.at(0);
  EXPECT_EQ(forward.time_stddev, Seconds(0.01));
  EXPECT_EQ(forward.energy_stddev, Joules(0.2));
  EXPECT_EQ(forward.samples, 7);
  const auto& backward = profile->find(0, "backward")->measurements;
  EXPECT_EQ(backward.at(0).time_stddev, Seconds(0)) << "nan and nothing: no spread";
  EXPECT_EQ(backward.at(0).samples, 1);
  // Two and four samples around 2 and 5 s: mean 4, squares 2 * 4 + 1 * 1 + 4 * 1 + 3 * 1 = 16 over 5.
  EXPECT_DOUBLE_EQ(backward.at(1).time.value(), 4);
  EXPECT_DOUBLE_EQ(backward.at(1).time_stddev.value(), std::sqrt(16.0 / 5));
  EXPECT_EQ(backward.at(1).energy_stddev, Joules(0));
  EXPECT_EQ(backward.at(1).samples, 6);

  const std::string one = "0,forward,1410,1,1,";
  EXPECT_THAT(error_of(spread + one + "-1,0,1\n"), HasSubstr("p.csv:2: time_stddev: '-1'; allowed: a number >= 0"));
  EXPECT_THAT(error_of(spread + one + "0,inf,1\n"), HasSubstr("p.csv:2: energy_stddev: 'inf'"));
  EXPECT_THAT(error_of(spread + one + "0,0,0\n"), HasSubstr("p.csv:2: samples: '0'; allowed: an integer from 1"));
}

TEST(ProfileCsv, ReadingReversesWriting) {
  model::Profile profile;
  profile.accelerators = {1, 1};
  for (int stage = 0; stage < 2; ++stage) {
    profile.entries.push_back({stage,
                               "forward",
                               {{Megahertz(1410), Seconds(0.1 / 3), Joules(1e-3), Seconds(1e-17), Joules(2.0 / 7), 3},
                                {Megahertz(1200), Seconds(0.2 / 3), Joules(1e-9), Seconds(0), Joules(0), 1}}});
    profile.entries.push_back(
        {stage, "backward", {{Megahertz(1410), Seconds(1), Joules(5), Seconds(0), Joules(3), 1}}});
    profile.entries.push_back(
        {stage, "load", {{Megahertz(0), Seconds(0.01), Joules(1), Seconds(0.002), Joules(0), 1}}});
  }
  const auto same = [](const model::Profile& a, const model::Profile& b) {
    ASSERT_EQ(a.entries.size(), b.entries.size());
    EXPECT_EQ(a.accelerators, b.accelerators);
    for (std::size_t e = 0; e < a.entries.size(); ++e) {
      EXPECT_EQ(a.entries[e].stage, b.entries[e].stage);
      EXPECT_EQ(a.entries[e].instruction, b.entries[e].instruction);
      ASSERT_EQ(a.entries[e].measurements.size(), b.entries[e].measurements.size());
      for (std::size_t k = 0; k < a.entries[e].measurements.size(); ++k) {
        const model::Measurement& x = a.entries[e].measurements[k];
        const model::Measurement& y = b.entries[e].measurements[k];
        EXPECT_EQ(x.clock, y.clock);
        EXPECT_DOUBLE_EQ(x.time.value(), y.time.value());
        EXPECT_DOUBLE_EQ(x.energy.value(), y.energy.value());
        EXPECT_DOUBLE_EQ(x.time_stddev.value(), y.time_stddev.value());
        EXPECT_DOUBLE_EQ(x.energy_stddev.value(), y.energy_stddev.value());
        EXPECT_EQ(x.samples, y.samples);
      }
    }
  };
  same(parse_profile_csv(format_profile_csv(profile), "p").value(), profile);
  profile.accelerators = {2, 4};  // written as shares, and put together again
  same(parse_profile_csv(format_profile_csv(profile), "p").value(), profile);
}

TEST(ProfileCsv, MergesTheRanksOfAStage) {
  const auto profile = parse_profile_csv(
      "rank,dp_rank,pp_rank,tp_rank,instruction,frequency,time,energy\n"
      "0,0,0,0,forward,1410,0.5,10\n1,0,0,1,forward,1410,0.7,9\n0,0,0,0,forward,1200,0.8,7\n"
      "0,0,0,0,backward,1410,1,20\n1,0,0,1,backward,1410,1,21\n",
      "p");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->accelerators, std::vector<int>{2});
  const auto& forward = profile->find(0, "forward")->measurements;
  ASSERT_EQ(forward.size(), 1u) << "1200 MHz was not measured by rank 1";
  EXPECT_EQ(forward[0].time, Seconds(0.7));
  EXPECT_EQ(forward[0].energy, Joules(19));
}

TEST(ProfileCsv, KeepsAClockWithoutItsPair) {
  auto profile = parse_profile_csv(good, "p");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->find(0, "forward")->measurements.size(), 2u);
  EXPECT_EQ(profile->find(0, "backward")->measurements.size(), 1u);
}

TEST(ProfileCsv, ConstantTimeInstructionsHaveOneOptionAtClockZero) {
  auto profile = parse_profile_csv(good + "0,load,,0.1,1\n0,load,1410,0.3,3\n0,optimizer-step,0,0.2,2\n", "p");
  ASSERT_TRUE(profile) << profile.error().message;
  const auto& load = profile->find(0, "load")->measurements;
  ASSERT_EQ(load.size(), 1u);
  EXPECT_EQ(load[0].clock, Megahertz(0));
  EXPECT_DOUBLE_EQ(load[0].time.value(), 0.2);
  EXPECT_NE(profile->find(0, "optimizer_step"), nullptr);
}

TEST(ProfileCsv, ErrorsNameFileLineColumnValueAndAllowedValues) {
  EXPECT_THAT(error_of(""), HasSubstr("p.csv: empty"));
  EXPECT_THAT(error_of("\n\n"), HasSubstr("p.csv: empty"));
  EXPECT_THAT(error_of(header), HasSubstr("p.csv: a header but no rows; needed: at least a forward"));
  EXPECT_EQ(error_of("stage,frequency,x\n"),
            "p.csv:1: missing columns: instruction, time, energy; found: stage, frequency, x");
  EXPECT_THAT(error_of("x\n"), HasSubstr("missing columns: stage (or pp_rank), instruction"));
  EXPECT_THAT(error_of("stage,instruction,frequency,time,time_s,energy\n"),
              HasSubstr("columns: 'time' and 'time_s'; allowed: one of them"));
  EXPECT_EQ(error_of(good + "0,forward,1395,nan,3\n"),
            "p.csv:5: time: 'nan'; allowed: a number > 0 and <= 1e6 (seconds)");
  for (const char* bad : {"inf", "-1", "0", "0.0", "1e7", "x", "", "1 2", "1,", "0x1"}) {
    EXPECT_THAT(error_of(good + "0,forward,1395," + bad + ",3\n"), HasSubstr("p.csv:5: ")) << bad;
  }
  for (const char* bad : {"-1", "0", "nan", "inf", "1e16", "j"}) {
    EXPECT_THAT(error_of(good + "0,forward,1395,1," + bad + "\n"), HasSubstr("p.csv:5: energy: '")) << bad;
  }
  for (const char* bad : {"0", "-5", "1410.5", "1e9", "MHz", "99999999999999999999"}) {
    EXPECT_THAT(error_of(good + "0,forward," + bad + ",1,1\n"), HasSubstr("p.csv:5: frequency: '")) << bad;
  }
  for (const char* bad : {"-1", "65536", "a", "1e400"}) {
    EXPECT_THAT(error_of(good + bad + ",forward,1395,1,1\n"), HasSubstr("p.csv:5: stage: '")) << bad;
  }
  EXPECT_THAT(error_of(good + "0,fwd,1395,1,1\n"),
              HasSubstr("p.csv:5: instruction: 'fwd'; allowed: forward, backward"));
  EXPECT_THAT(error_of(good + "0,forward\n"), HasSubstr("p.csv:5: frequency: is missing"));
  EXPECT_THAT(error_of(good + "\"0"), HasSubstr("p.csv:5: a quote that never ends"));
  EXPECT_THAT(error_of(good + "\"0\"1,forward\n"), HasSubstr("p.csv:5: text after a closing quote"));
}

/// A stage with an embedding or a loss alone computes for microseconds: less than a counter can tell from nothing.
TEST(ProfileCsv, AComputationOfAMillisecondMayHaveNoEnergy) {
  const auto profile = parse_profile_csv(good + "0,forward,1395,0.00002,0\n", "p.csv");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->find(0, "forward")->measurements[1].energy, Joules(0));
  EXPECT_EQ(error_of(good + "0,forward,1395,0.0011,0\n"),
            "p.csv:5: energy: '0'; allowed: a number > 0 and <= 1e15 (joules)");
}

TEST(ProfileCsv, NamesWhatASpreadsheetDidToAFile) {
  EXPECT_THAT(error_of("stage;instruction;frequency;time;energy\n0;forward;1400;0,1;30\n"),
              HasSubstr("fields are separated by ';'; allowed: commas, and points in numbers"));
  EXPECT_THAT(error_of("stage\tinstruction\tfrequency\ttime\tenergy\n"), HasSubstr("fields are separated by tabs"));
  EXPECT_THAT(error_of("sep=,\nstage,instruction,frequency,time,energy\n"), HasSubstr("p.csv:1"));
  EXPECT_THAT(error_of("sep=,\nstage,instruction,frequency,time,energy\n"), HasSubstr("remove this line"));
  EXPECT_THAT(error_of(std::string("\xff\xfes\0t\0a\0", 8)), HasSubstr("the file is UTF-16; save it as UTF-8"));
  EXPECT_THAT(error_of("stage,instruction,Frequency (MHz),time,energy\n"),
              HasSubstr("'Frequency (MHz)' is not 'frequency': names are in lower case and without units"));
  EXPECT_THAT(error_of("stage,instruction,frequency,time,energy\n0,forward,1400,0.1\xc2\xa0,30\n"),
              HasSubstr("without a non-breaking space"));
}

TEST(ProfileCsv, StagesMustBeWholeAndComplete) {
  EXPECT_THAT(error_of(good + "3,forward,1,1,1\n3,backward,1,1,1\n"),
              HasSubstr("p.csv: stages 0..3 expected, stage 1 has no rows"));
  EXPECT_THAT(error_of(header + "0,forward,1,1,1\n"), HasSubstr("stage 0 has forward but no backward"));
  EXPECT_THAT(error_of(header + "0,backward,1,1,1\n"), HasSubstr("stage 0 has backward but no forward"));
  EXPECT_THAT(error_of(header + "0,forward,1,1,1\n0,input_gradient,1,1,1\n"),
              HasSubstr("stage 0 has input_gradient but no weight_gradient"));
  EXPECT_THAT(error_of("rank,stage,instruction,frequency,time,energy\n0,0,forward,1,1,1\n1,0,forward,2,1,1\n"),
              HasSubstr("stage 0, forward: no clock was measured by all 2 ranks"));
}

TEST(ProfileCsv, NamesUnreadableFiles) {
  const auto missing = read_profile_csv("no/such/profile.csv");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr("no/such/profile.csv: cannot be read: No such file"));
  const auto folder = read_profile_csv("/");
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("Is a directory"));
}

TEST(ProfileCsv, ReadsEveryPublishedProfile) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    const std::string path = entry.path().string();
    const bool emulation = entry.path().parent_path().filename() == "stage_profile";
    if (!emulation && !path.ends_with(".profile.csv") && !path.ends_with(".profile_grid.csv")) continue;
    auto profile = read_profile_csv(path);
    if (path.ends_with("A100_bert-huge-uncased_pp4.profile_grid.csv")) {  // truly has a stage without forward
      ASSERT_FALSE(profile);
      EXPECT_EQ(profile.error().message, path + ": profile: stage 1 has backward but no forward");
      continue;
    }
    ASSERT_TRUE(profile) << profile.error().message;
    auto schedule = model::make_schedule("1f1b", {profile->num_stages(), 12, 1});
    ASSERT_TRUE(schedule) << schedule.error().message;
    auto dag = model::build_dag(*profile, *schedule, {Watts(80), Seconds(0.003)});
    ASSERT_TRUE(dag) << dag.error().message;
    EXPECT_TRUE(dag->validate());
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace perseus::formats
