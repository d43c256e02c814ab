// The generated orders against tables that PyTorch's own generators print.
#include <gtest/gtest.h>

#include "io/formats/action_table.h"
#include "planning/model/make_schedule.h"

namespace perseus::formats {
namespace {

std::string table_of(const std::string& name, int ranks, int microbatches, int chunks) {
  auto schedule = model::make_schedule(name, {ranks, microbatches, chunks});
  if (!schedule) return schedule.error().message;
  if (Status status = schedule->validate(); !status) return status.error().message;
  auto table = format_action_table(*schedule);
  return table ? *table : table.error().message;
}

/// Reads a published table and writes it compute-only, so that communication and overlaps drop out.
std::string compute_only(const std::string& published) {
  auto schedule = parse_action_table(published, "published");
  return schedule ? *format_action_table(*schedule) : schedule.error().message;
}

// torchtitan RFC 1682.
TEST(PyTorchSchedules, GPipe) {
  const std::string published =
      "0F0, 0F1, 0F2, 0F3, , , , , , , , , , 0B0, 0B1, 0B2, 0B3\n"
      ", 1F0, 1F1, 1F2, 1F3, , , , , , , 1B0, 1B1, 1B2, 1B3\n"
      ", , 2F0, 2F1, 2F2, 2F3, , , , 2B0, 2B1, 2B2, 2B3\n"
      ", , , 3F0, 3F1, 3F2, 3F3, 3B0, 3B1, 3B2, 3B3\n";
  EXPECT_EQ(table_of("gpipe", 4, 4, 1), compute_only(published));
}

// The test artifact dualpipev_4rank_10mb of torch.distributed.pipelining.
TEST(PyTorchSchedules, DualPipeV) {
  const std::string published =
      "0F0,0F1,0F2,0F3,0F4,0F5,0F6,7F0,7I0,7W0,7F1,7I1,7W1,7F2,7I2,7W2,7F3,(0F7;7B3)OVERLAP_F_B,(7F4;0B0)OVERLAP_F_B,"
      "(0F8;7B4)OVERLAP_F_B,(7F5;0B1)OVERLAP_F_B,(0F9;7B5)OVERLAP_F_B,(7F6;0B2)OVERLAP_F_B,7B6,(7F7;0B3)OVERLAP_F_B,"
      "7B7,(7F8;0B4)OVERLAP_F_B,7B8,(7F9;0B5)OVERLAP_F_B,7B9,0I6,0W6,0I7,0W7,0I8,0W8,0I9,0W9\n"
      "1F0,1F1,1F2,1F3,1F4,6F0,1F5,6F1,6I0,6W0,6F2,6I1,6W1,6F3,(1F6;6B2)OVERLAP_F_B,(6F4;1B0)OVERLAP_F_B,"
      "(1F7;6B3)OVERLAP_F_B,(6F5;1B1)OVERLAP_F_B,(1F8;6B4)OVERLAP_F_B,(6F6;1B2)OVERLAP_F_B,(1F9;6B5)OVERLAP_F_B,"
      "(6F7;1B3)OVERLAP_F_B,6B6,(6F8;1B4)OVERLAP_F_B,6B7,(6F9;1B5)OVERLAP_F_B,6B8,1B6,6I9,1I7,6W9,1I8,1W7,1I9,1W8,"
      "1W9\n"
      "2F0,2F1,2F2,5F0,2F3,5F1,2F4,5F2,5I0,5W0,5F3,(2F5;5B1)OVERLAP_F_B,(5F4;2B0)OVERLAP_F_B,(2F6;5B2)OVERLAP_F_B,"
      "(5F5;2B1)OVERLAP_F_B,(2F7;5B3)OVERLAP_F_B,(5F6;2B2)OVERLAP_F_B,(2F8;5B4)OVERLAP_F_B,(5F7;2B3)OVERLAP_F_B,"
      "(2F9;5B5)OVERLAP_F_B,(5F8;2B4)OVERLAP_F_B,5B6,(5F9;2B5)OVERLAP_F_B,5B7,2B6,5B8,2I7,5I9,2I8,2W7,2I9,5W9,2W8,"
      "2W9\n"
      "3F0,4F0,3F1,4F1,3F2,4F2,3F3,4F3,3F4,4B0,(4F4;3B0)OVERLAP_F_B,(3F5;4B1)OVERLAP_F_B,(4F5;3B1)OVERLAP_F_B,"
      "(3F6;4B2)OVERLAP_F_B,(4F6;3B2)OVERLAP_F_B,(3F7;4B3)OVERLAP_F_B,(4F7;3B3)OVERLAP_F_B,(3F8;4B4)OVERLAP_F_B,"
      "(4F8;3B4)OVERLAP_F_B,(3F9;4B5)OVERLAP_F_B,(4F9;3B5)OVERLAP_F_B,4B6,3B6,4B7,3B7,4I8,3I8,4I9,3I9,4W8,3W8,4W9,"
      "3W9\n";
  EXPECT_EQ(table_of("dualpipev", 4, 10, 2), compute_only(published));
}

// pytorch issue 172668: Interleaved1F1B on 2 ranks with communication (without its gradient reduction here).
TEST(PyTorchSchedules, InterleavedWithCommunication) {
  const std::string published =
      "0UNSHARD,2UNSHARD,0F0,0SEND_F0,2RECV_F0,0F1,0SEND_F1,2RECV_F1,2F0,2SEND_F0,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,"
      "2RECV_B1,2B1,2SEND_B1,2RESHARD,0RECV_B0,0B0,0RECV_B1,0B1,0RESHARD\n"
      "1UNSHARD,3UNSHARD,1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3F0,3RECV_F1,3B0,3SEND_B0,1RECV_B0,3F1,"
      "3B1,3SEND_B1,1RECV_B1,3RESHARD,1B0,1SEND_B0,1B1,1SEND_B1,1RESHARD\n";
  EXPECT_EQ(table_of("interleaved-1f1b", 2, 2, 2), compute_only(published));
}

// pytorch pull request 129597: rounds of five microbatches (10 on 4 ranks); the steps that it shows of rank 0 and 3.
TEST(PyTorchSchedules, InterleavedWithRoundsThatAreNoMultipleOfTheRanks) {
  const std::string table = table_of("interleaved-1f1b", 4, 10, 2);
  EXPECT_TRUE(table.starts_with("0F0,0F1,0F2,0F3,0F4,4F0,4F1,4F2,4F3,4F4,0F5,0F6,4B0,0F7,")) << table;
  EXPECT_NE(table.find("\n3F0,3F1,3F2,3F3,3F4,7F0,7B0,7F1,7B1,7F2,7B2,7F3,"), std::string::npos) << table;
}

// The test artifact zb1p_2rank_2stagep_compute, from versions in which B was the input gradient.
TEST(PyTorchSchedules, ReadsTablesOfOldVersions) {
  const std::string published =
      "0F0,0F1,2F0,,2F1,2B0,2W0,2B1,2W1,0B0,0W0,0B1,0W1\n"
      ",1F0,1F1,3F0,3B0,3F1,3B1,3W0,1B0,3W1,1B1,1W0,1W1\n";
  EXPECT_EQ(compute_only(published),
            "0F0,0F1,2F0,2F1,2I0,2W0,2I1,2W1,0I0,0W0,0I1,0W1\n"
            "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1I0,3W1,1I1,1W0,1W1\n");
}

TEST(PyTorchSchedules, OneForwardOneBackward) {
  EXPECT_EQ(table_of("1f1b", 3, 4, 1),
            "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n"
            "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3\n"
            "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3\n");
}

// Output of ScheduleInterleavedZeroBubble for one stage per rank.
TEST(PyTorchSchedules, ZeroBubble) {
  EXPECT_EQ(table_of("zero-bubble", 3, 4, 1),
            "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n"
            "1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3\n"
            "2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3\n");
}

// Output of ScheduleZBVZeroBubble for a full pipeline and for fewer microbatches than fill it.
TEST(PyTorchSchedules, ZeroBubbleV) {
  EXPECT_EQ(table_of("zbv", 2, 4, 2),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0I1,0W1,3F3,3I3,3W3,0I2,0W2,0I3,0W3\n"
            "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1I2,2I3,1I3,1W2,2W3,1W3\n");
  EXPECT_EQ(table_of("zbv", 2, 1, 2), "0F0,3F0,3I0,3W0,0I0,0W0\n1F0,2F0,2I0,2W0,1I0,1W0\n");
}

}  // namespace
}  // namespace perseus::formats
