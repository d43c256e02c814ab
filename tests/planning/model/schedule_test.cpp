#include "planning/model/schedule.h"

#include <gtest/gtest.h>

#include "planning/model/make_schedule.h"

namespace perseus::model {
namespace {

int boundaries_of(const char* schedule, int ranks, int chunks) {
  return boundary_count(make_schedule(schedule, {ranks, 2 * ranks * chunks, chunks}).value());
}

TEST(BoundaryCount, OnlySchedulesThatGoAroundUseTheOneFromTheLastRankToTheFirst) {
  EXPECT_EQ(boundaries_of("1f1b", 4, 1), 3);
  EXPECT_EQ(boundaries_of("zero-bubble", 4, 1), 3);
  EXPECT_EQ(boundaries_of("interleaved-1f1b", 4, 2), 4);
  EXPECT_EQ(boundaries_of("zbv", 4, 2), 3) << "goes back over the same boundaries";
  EXPECT_EQ(boundaries_of("interleaved-1f1b", 2, 2), 1) << "two ranks have one boundary";
  EXPECT_EQ(boundaries_of("1f1b", 1, 1), 0);
}

}  // namespace
}  // namespace perseus::model
