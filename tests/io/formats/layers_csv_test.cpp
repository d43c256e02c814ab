// Layers as CSV: accepted input, rejected input and its errors, and a round trip.
#include "io/formats/layers_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/formats/profile_csv.h"
#include "planning/partitioner/stage_profile.h"

namespace perseus::formats {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  const auto layers = parse_layers_csv(text, "l.csv");
  return layers.ok() ? "(accepted)" : layers.error().message;
}

TEST(LayersCsv, ForwardLatenciesAlone) {
  const auto layers = parse_layers_csv("\xEF\xBB\xBFname,forward_s\r\n\"a, b\",0.5\r\n\r\nc,1e-3\r\n", "l.csv");
  ASSERT_TRUE(layers.ok()) << layers.error().message;
  ASSERT_EQ(layers->size(), 2);
  EXPECT_EQ((*layers)[0].name, "a, b");
  EXPECT_EQ((*layers)[0].kind, model::LayerKind::transformer);
  EXPECT_EQ((*layers)[0].costs[0].clock, Megahertz(0));
  EXPECT_EQ(model::forward_latencies(*layers), (std::vector{Seconds(0.5), Seconds(1e-3)}));
}

TEST(LayersCsv, ClocksInAnyOrder) {
  const auto layers = parse_layers_csv(
      "kind,name,frequency_mhz,forward_s,backward_s,forward_j,backward_j\n"
      ",a,900,2,4,20,40\n"
      "head,h,900,3,6,30,60\n"
      "head,h,1200,1.5,3,40,80\n"
      ",a,1200,1,2,30,60\n",
      "l.csv");
  ASSERT_TRUE(layers.ok()) << layers.error().message;
  ASSERT_EQ(layers->size(), 2);
  EXPECT_EQ((*layers)[1].kind, model::LayerKind::head);
  EXPECT_EQ(model::forward_latencies(*layers), (std::vector{Seconds(1), Seconds(1.5)}));

  const auto again = parse_layers_csv(format_layers_csv(*layers), "again");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(format_layers_csv(*again), format_layers_csv(*layers));

  const auto profile = partitioner::profile_of(*layers, {{0, 2}});
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  ASSERT_TRUE(profile->validate().ok());
  const auto read = parse_profile_csv(format_profile_csv(*profile), "p.csv");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto& backward = read->find(0, "backward")->measurements;
  ASSERT_EQ(backward.size(), 2);
  EXPECT_EQ(backward[0].clock, Megahertz(1200));
  EXPECT_EQ(backward[0].time, Seconds(5));
  EXPECT_EQ(backward[1].energy, Joules(100));
}

TEST(LayersCsv, ErrorsNameTheProblemAndItsLine) {
  EXPECT_THAT(refusal(""), HasSubstr("l.csv: empty; needed: a header line with name, forward_s"));
  EXPECT_THAT(refusal("name,forward_s\n"), HasSubstr("l.csv: a header but no rows; needed: a row per layer"));
  EXPECT_THAT(refusal("name\na\n"), HasSubstr("l.csv:1: missing columns: forward_s; found: name"));
  EXPECT_THAT(refusal("forward_s\n1\n"), HasSubstr("missing columns: name; found: forward_s"));
  EXPECT_THAT(refusal("name,forward_s,forward\na,1,1\n"), HasSubstr("column: 'forward'; allowed: name, forward_s"));
  EXPECT_THAT(refusal("name,forward_s,name\na,1,b\n"), HasSubstr("columns: 'name' and 'name'; allowed: one of them"));
  EXPECT_THAT(refusal("name,forward_s,forward_j,backward_s\na,1,1,1\n"), HasSubstr("one without the other"));
  EXPECT_THAT(refusal("name,forward_s,forward_j,backward_j\na,1,1,1\n"),
              HasSubstr("missing columns: backward_s, which energies need"));
  for (const char* bad : {"0", "-1", "nan", "inf", "1e7", "", "1s"}) {
    EXPECT_THAT(refusal(std::string("name,forward_s\na,1\nb,") + bad + "\n"), HasSubstr("l.csv:3: forward_s: ")) << bad;
  }
  EXPECT_THAT(refusal("name,forward_s\n,1\n"), HasSubstr("name: is missing"));
  EXPECT_THAT(refusal("name,forward_s\na,1,1,1,1,1,1,1\n"), HasSubstr("l.csv:2: 8 fields; allowed: 2"));
  EXPECT_THAT(refusal("name,kind,forward_s\na,hed,1\n"), HasSubstr("l.csv:2: kind: 'hed'; allowed: embedding"));
  EXPECT_THAT(refusal("name,frequency_mhz,forward_s\na,0,1\n"), HasSubstr("frequency_mhz: '0'"));
  EXPECT_THAT(refusal("name,frequency_mhz,forward_s\na,9,1\na,9,1\n"), HasSubstr("l.csv:3: frequency_mhz: layer 'a'"));
  EXPECT_THAT(refusal("name,frequency_mhz,forward_s\na,9,1\na,8,1\nb,9,1\n"), HasSubstr("layer 'b' lacks 8 MHz"));
  EXPECT_THAT(refusal("name,frequency_mhz,forward_s\na,9,1\nb,9,1\nb,8,1\n"), HasSubstr("layer 'b' has 8 MHz"));
  EXPECT_THAT(refusal("name,kind,frequency_mhz,forward_s\na,mtp,9,1\na,head,8,1\n"),
              HasSubstr("l.csv:3: kind: 'head'"));
}

TEST(StageProfile, NeedsEnergies) {
  const auto layers = parse_layers_csv("name,forward_s\na,1\n", "l.csv");
  const auto profile = partitioner::profile_of(*layers, {{0, 1}});
  ASSERT_FALSE(profile.ok());
  EXPECT_THAT(profile.error().message, HasSubstr("layer 'a'"));
}

TEST(FormatProfileCsv, SharesEnergyAmongRanks) {
  model::Profile profile;
  profile.accelerators = {2, 3};
  for (const int stage : {0, 1}) {
    for (const char* name : {"forward", "backward"}) {
      profile.entries.push_back({stage, name, {{Megahertz(900), Seconds(2), Joules(12), {}, {}, 1}}});
    }
  }
  const auto read = parse_profile_csv(format_profile_csv(profile), "p.csv");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->accelerators, profile.accelerators);
  EXPECT_EQ(read->find(1, "backward")->measurements[0].energy, Joules(12));
}

}  // namespace
}  // namespace perseus::formats
