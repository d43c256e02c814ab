// Memory of stages as CSV: accepted input, rejected input and its errors.
#include "io/formats/memory_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::formats {
namespace {

TEST(MemoryCsv, ReadsStagesInAnyOrder) {
  const auto memory = parse_memory_csv(
      "activations_gib,stage,weights_gib,recompute_gib,checkpoint_gib\n2,1,20,0.5,\n\n1,0,10,,0.25\n", "m.csv");
  ASSERT_TRUE(memory.ok()) << memory.error().message;
  ASSERT_EQ(memory->size(), 2);
  EXPECT_EQ((*memory)[0].weights_gib, 10);
  EXPECT_EQ((*memory)[0].checkpoint_gib, 0.25);
  EXPECT_FALSE((*memory)[0].recompute_gib);
  EXPECT_EQ((*memory)[1].activations_gib, 2);
  EXPECT_EQ((*memory)[1].checkpoint_gib, 0);
  EXPECT_EQ((*memory)[1].recompute_gib, 0.5);
}

TEST(MemoryCsv, ErrorsNameTheProblem) {
  const std::string header = "stage,weights_gib,activations_gib\n";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "m.csv: no stages"},
           {"stage,weights_gib\n0,1\n", "m.csv:1: missing column: activations_gib"},
           {"stage,weight\n", "m.csv:1: column 'weight'; allowed: stage, weights_gib"},
           {"stage,stage\n", "m.csv:1: column 'stage' appears twice"},
           {header + "x,1,1\n", "m.csv:2: stage: 'x'; allowed: 0 to 65535"},
           {header + "0,-1,1\n", "m.csv:2: weights_gib: '-1'; allowed: 0 to 1e+06 GiB"},
           {header + "0,nan,1\n", "m.csv:2: weights_gib: 'nan'"},
           {header + "0,1\n", "m.csv:2: activations_gib: ''"},
           {header + "0,1,1,1,1,1\n", "m.csv:2: more fields"},
           {header + "0,1,1\n0,1,1\n", "m.csv:3: stage: 0 appears twice"},
           {header + "1,1,1\n", "m.csv: stage 0 has no row"}}) {
    const auto memory = parse_memory_csv(text, "m.csv");
    ASSERT_FALSE(memory.ok()) << text;
    EXPECT_THAT(memory.error().message, ::testing::StartsWith(message));
  }
}

}  // namespace
}  // namespace perseus::formats
