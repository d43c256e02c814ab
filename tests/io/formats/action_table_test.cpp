#include "io/formats/action_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/model/make_schedule.h"

namespace perseus::formats {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto schedule = parse_action_table(text, "t.csv");
  return schedule ? "no error" : schedule.error().message;
}

TEST(ActionTable, ReadsOneRowPerRankAndSkipsBubblesAndCommunication) {
  auto schedule =
      parse_action_table("0UNSHARD,0F0,0SEND_F0,,0RECV_B0,0B0,0REDUCE_GRAD\r\n,1RECV_F0,1F0,1I0,1W0,\n", "t");
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_EQ(schedule->num_stages, 2);
  EXPECT_EQ(schedule->num_microbatches, 1);
  using enum model::Instruction;
  EXPECT_EQ(schedule->ranks[0], (std::vector<model::Action>{{forward, 0, 0}, {backward, 0, 0}, {all_reduce, 0, -1}}));
  EXPECT_EQ(schedule->ranks[1],
            (std::vector<model::Action>{{forward, 1, 0}, {input_gradient, 1, 0}, {weight_gradient, 1, 0}}));
}

TEST(ActionTable, AWaitBelongsToTheNextComputation) {
  using enum model::Instruction;
  auto schedule =
      parse_action_table("0F0,0F1,1WAIT_B0,,0F2,0B0,0B1,0B2,1WAIT_F0\n1F0,1I0,1W0,1F1,1B1,1F2,1B2,9WAIT_F9\n", "t");
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_EQ(schedule->early_receives, (std::vector<model::EarlyReceive>{{{input_gradient, 1, 0}, {forward, 0, 2}}}));
  EXPECT_EQ(schedule->ranks[0].size(), 6U);
}

TEST(ActionTable, ErrorsNameLineCellAndText) {
  EXPECT_EQ(error_of(""), "t.csv: empty; one row per rank is needed");
  EXPECT_THAT(error_of("0F0,0B0\n1F0,1X0\n"), HasSubstr("t.csv:2: cell 2: '1X0'; allowed: <stage><type><microbatch>"));
  for (const char* bad :
       {"F0", "0F", "0", "0f0", "-1F0", "65536F0", "0F1048576", "0F99999999999", "0FB0", "(0F0;0B0", "(0F0;0B0)",
        "()OVERLAP_F_B", "(0F0;)OVERLAP_F_B", "0F0 x", "0F0;0B0", "WAIT_F0", "0WAIT_F", "0WAIT_I0", "0WAIT_F1048576"}) {
    EXPECT_THAT(error_of(std::string("0F0,") + bad + "\n"), HasSubstr("t.csv:1: cell 2: '")) << bad;
  }
  EXPECT_THAT(error_of("0F0\n"), HasSubstr("1 stages x 1 microbatches need at least 2 actions, found 1"));
  EXPECT_THAT(error_of("0F0,0F0,0B0\n"), HasSubstr("rank 0, action 1: forward of stage 0, microbatch 0: given twice"));
  EXPECT_THAT(error_of("0F0,0B0,0F1,0W1\n"),
              HasSubstr("stage 0, microbatch 1 has forward + weight_gradient; must have"));
  EXPECT_THAT(error_of("0F0,0B0,1F0,1B0\n0F1,0B1,1F1,1B1\n"),
              HasSubstr("also runs on rank 0; a stage lives on one rank"));
  EXPECT_THAT(error_of("65535F1048575\n"), HasSubstr("need at least"));
  EXPECT_THAT(error_of("0F0,1F0\n0B0,1B0\n"), HasSubstr("a stage lives on one rank"));
}

TEST(ActionTable, WritesOnlyActionsThatPyTorchKnows) {
  const auto table = format_action_table(*model::make_schedule("early-recompute-1f1b", {2, 2, 1}));
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("recompute of stage 0, microbatch 1 has no name"));
}

}  // namespace
}  // namespace perseus::formats
