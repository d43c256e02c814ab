// The history of a site's domains: readings in memory, minutes in the store, and while the store fails.
#include "server/power/site_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::power {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kBegin_s = 1'800'000'000;

class SiteHistoryTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  SiteHistoryTest() {
    view.domains.resize(2);
    view.domains[0].name = "hall";
    view.domains[0].metered = Watts(1000);
    view.domains[0].limit = Watts(800);
    view.domains[0].counted = Watts(700);
    view.domains[0].tiers = {{0.9, 2, 16, 0.25}};
    view.domains[1].name = "row";
    view.domains[1].parent = "hall";
    history = made("this start");
  }
  std::shared_ptr<SiteHistory> made(const std::string& source) {
    return std::make_shared<SiteHistory>(base.access_to_store(), base.clock(), base.due(), source);
  }
  void go_to(double s) {
    base.clock().advance(kBegin_s + s - now_s());
    if (allocates && history->wants_reading(now_s())) history->take(view, now_s());
    base.due().perform(now_s());
    base.settle();
  }
  SiteProof proof(std::int64_t step_s = store::kMinute_s) {
    const SiteProofQuery query{step_s, 0, kBegin_s + 100'000, "", 100};
    return answer_of<SiteProof>([&](auto done) { history->proof(query, done); }).value();
  }

  SitePowerView view;
  bool allocates = true;
  std::shared_ptr<SiteHistory> history;
};

TEST_F(SiteHistoryTest, IsShownAtOnceAndWrittenWhenItsMinuteIsOver) {
  go_to(0);
  go_to(1);  // not due yet
  view.domains[0].counted = Watts(900);
  go_to(5);
  ASSERT_THAT(proof().entries, SizeIs(1)) << "the row has no limit";
  const SiteProofEntry entry = proof().entries[0];
  EXPECT_EQ(entry.start_s, kBegin_s);
  EXPECT_EQ(entry.domain, "hall");
  EXPECT_EQ(entry.sums.readings, 2);
  EXPECT_EQ(entry.sums.over, 1);
  EXPECT_EQ(entry.limit(), Watts(800));
  EXPECT_EQ(entry.metered_limit(), Watts(1000));
  EXPECT_EQ(entry.of_all(entry.sums.counted_w), Watts(800));
  EXPECT_EQ(entry.metered(), std::nullopt);
  EXPECT_EQ(entry.sums.tiers.at(0.9), (store::SiteTierSums{32, 8}));
  EXPECT_THAT(database->site_history(), IsEmpty());
  go_to(61);
  EXPECT_THAT(database->site_history(), SizeIs(1));
  EXPECT_EQ(proof().entries.at(0).sums, entry.sums);
  EXPECT_EQ(proof(3600).entries.at(0).sums.readings, 3);
}

TEST_F(SiteHistoryTest, NothingIsRecordedWhileAnotherServerAllocates) {
  allocates = false;
  go_to(0);
  go_to(65);
  EXPECT_THAT(proof().entries, IsEmpty());
}

TEST_F(SiteHistoryTest, AMinuteThatTwoServersSharedIsTheirSum) {
  go_to(0);
  go_to(5);
  ASSERT_TRUE(answer_of<Ok>([&](auto done) { history->keep(done); }).ok());
  const std::shared_ptr<SiteHistory> first = std::exchange(history, made("another server"));
  go_to(30);
  EXPECT_EQ(proof().entries.at(0).sums.readings, 3);
  go_to(60);
  EXPECT_THAT(database->site_history(), SizeIs(2));
  EXPECT_EQ(proof().entries.at(0).sums.readings, 3);
}

TEST_F(SiteHistoryTest, WhileTheStoreFailsNothingIsLostOrCountedTwice) {
  go_to(0);
  database->write_failure = Error{ErrorCode::unavailable, "the disk is full"};
  go_to(60);
  go_to(65);
  EXPECT_THAT(database->site_history(), IsEmpty());
  database->write_failure.reset();
  go_to(71);
  EXPECT_THAT(database->site_history(), SizeIs(1));
  ASSERT_THAT(proof().entries, SizeIs(2));
  EXPECT_EQ(proof().entries[0].sums.readings, 1);
  EXPECT_EQ(proof().entries[1].sums.readings, 3);
}

TEST_F(SiteHistoryTest, AStopWritesTheMinuteAndTakesNoMoreReadings) {
  go_to(0);
  ASSERT_TRUE(answer_of<Ok>([&](auto done) { history->keep(done); }).ok());
  EXPECT_THAT(database->site_history(), SizeIs(1));
  go_to(5);
  go_to(60);
  EXPECT_EQ(proof().entries.at(0).sums.readings, 1);
}

TEST(SiteProof, KeepsTheDomainsOfAStepTogether) {
  store::SiteFigures one;
  one.readings = 1;
  std::vector<store::SiteRow> rows;
  for (const std::int64_t start_s : {0, 60, 120}) {
    for (const char* domain : {"a", "b"}) rows.push_back({domain, 60, start_s, "s", one});
  }
  rows.push_back({"a", 3600, 0, "", one});  // older: not in steps of a minute
  const SiteProof page = site_proof({60, 0, 1000, "", 3}, rows);
  EXPECT_THAT(page.entries, SizeIs(4));
  EXPECT_EQ(page.next_s, 120);
  EXPECT_THAT(site_proof({60, 60, 120, "b", 3}, rows).entries, SizeIs(1));
  EXPECT_EQ(site_proof({3600, 0, 1000, "a", 3}, rows).entries.at(0).sums.readings, 4);
}

}  // namespace
}  // namespace perseus::power
