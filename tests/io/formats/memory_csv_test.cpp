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
           {"", "m.csv: empty; needed: a header line with stage, weights_gib, activations_gib"},
           {header, "m.csv: a header but no rows; needed: a row per stage"},
           {"stage,weights_gib\n0,1\n", "m.csv:1: missing columns: activations_gib; found: stage, weights_gib"},
           {"stage,weight\n", "m.csv:1: column: 'weight'; allowed: stage, weights_gib"},
           {"stage,stage\n", "m.csv:1: columns: 'stage' and 'stage'; allowed: one of them"},
           {header + "x,1,1\n", "m.csv:2: stage: 'x'; allowed: an integer from 0 to 65535"},
           {header + "0,-1,1\n", "m.csv:2: weights_gib: '-1'; allowed: a number >= 0 and <= 1e6 (GiB)"},
           {header + "0,nan,1\n", "m.csv:2: weights_gib: 'nan'"},
           {header + "0,1\n", "m.csv:2: activations_gib: is missing; allowed: a number >= 0"},
           {header + "0,1,1,1,1,1\n", "m.csv:2: 6 fields; allowed: 3, as in the header"},
           {header + "0,1,1\n0,1,1\n", "m.csv:3: stage: '0'; allowed: one row per stage"},
           {header + "1,1,1\n", "m.csv: stage 0 has no row"}}) {
    const auto memory = parse_memory_csv(text, "m.csv");
    ASSERT_FALSE(memory.ok()) << text;
    EXPECT_THAT(memory.error().message, ::testing::StartsWith(message));
  }
}

}  // namespace
}  // namespace perseus::formats
