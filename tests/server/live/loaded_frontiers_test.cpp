// Frontiers are requested once, until they arrive or are no longer needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/jobs/requests.h"
#include "server/live/live_job.h"

namespace perseus::live {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::shared_ptr<jobs::CharacterizedPipeline> frontier(const std::string& key) {
  auto made = std::make_shared<jobs::CharacterizedPipeline>();
  made->key = key;
  return made;
}

TEST(LoadedFrontiers, AFrontierIsFoundByItsKey) {
  LoadedFrontiers frontiers;
  const auto a = frontier("a");
  frontiers.add(a);
  EXPECT_EQ(frontiers.find("a"), a);
  EXPECT_EQ(frontiers.find("b"), nullptr);
  EXPECT_EQ(frontiers.all().size(), 1U);
  const auto newer = frontier("a");
  frontiers.add(newer);
  EXPECT_EQ(frontiers.find("a"), newer);
  frontiers.drop("a");
  EXPECT_EQ(frontiers.find("a"), nullptr);
}

TEST(LoadedFrontiers, AFrontierIsRequestedOnceAndNotWhileItIsInMemory) {
  LoadedFrontiers frontiers;
  EXPECT_TRUE(frontiers.request("a"));
  EXPECT_FALSE(frontiers.request("a"));
  frontiers.answered("a");
  EXPECT_TRUE(frontiers.request("a")) << "the answer was an error: it is requested again";
  frontiers.answered("a");
  frontiers.add(frontier("a"));
  EXPECT_FALSE(frontiers.request("a"));
  EXPECT_THAT(frontiers.requested(), IsEmpty());
}

TEST(LoadedFrontiers, RequestsThatAreNotNeededAreWithdrawn) {
  LoadedFrontiers frontiers;
  for (const char* const key : {"a", "b", "c"}) frontiers.request(key);
  EXPECT_THAT(frontiers.withdraw_except({"b", "d"}), ElementsAre("a", "c"));
  EXPECT_THAT(frontiers.requested(), ElementsAre("b"));
  EXPECT_THAT(frontiers.withdraw_except({}), ElementsAre("b"));
}

}  // namespace
}  // namespace perseus::live
