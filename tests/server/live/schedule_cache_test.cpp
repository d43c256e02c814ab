#include <gtest/gtest.h>

#include "server/live/live_job.h"

namespace perseus::live {
namespace {

TEST(ScheduleCache, AScheduleStaysUntilAnotherVersionIsShown) {
  ScheduleCache cache;
  EXPECT_EQ(cache.at(1, {0, 0, 0, 0}), nullptr);
  const auto made = std::make_shared<const jobs::StageSchedule>();
  cache.at(1, {0, 0, 0, 0}) = made;
  EXPECT_EQ(cache.at(1, {0, 0, 0, 0}), made);
  EXPECT_EQ(cache.at(1, {0, 1, 0, 0}), nullptr) << "another stage";
  EXPECT_EQ(cache.at(1, {0, 0, 0, 0}), made);
  EXPECT_EQ(cache.at(2, {0, 0, 0, 0}), nullptr);
  EXPECT_EQ(cache.at(1, {0, 0, 0, 0}), nullptr) << "those of version 1 were dropped";
}

TEST(ScheduleCache, ClearDropsTheSchedulesAndNotTheShapeThatWasRead) {
  ScheduleCache cache;
  cache.at(1, {0, 0, 0, 0}) = std::make_shared<const jobs::StageSchedule>();
  cache.max_clock.shape.emplace();
  cache.clear();
  EXPECT_EQ(cache.at(1, {0, 0, 0, 0}), nullptr);
  EXPECT_TRUE(cache.max_clock.shape);
}

}  // namespace
}  // namespace perseus::live
