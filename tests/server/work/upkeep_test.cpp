// What upkeep removes and packs, when, and one task after another.
#include "server/work/upkeep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::work {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

store::JobIndexRow row(const std::string& job, const std::string& state, double updated_s, std::int64_t bytes) {
  store::JobIndexRow row{job, state, "", 0, updated_s, std::nullopt, 10, ""};
  row.bytes = bytes;
  row.packed = 10;
  return row;
}

TEST(UpkeepOf, RemovesTheOldestEndedJobsUntilTheRestIsSmallEnough) {
  const std::vector<store::JobIndexRow> jobs{row("new", "finished", 9, 100), row("old", "expired", 1, 100),
                                             row("live", "deployed", 0, 500), row("middle", "finished", 5, 100)};
  EXPECT_THAT(upkeep_of(jobs, {0, 800, 0}, 100).remove, IsEmpty());
  EXPECT_THAT(upkeep_of(jobs, {0, 700, 0}, 100).remove, ElementsAre("old"));
  EXPECT_THAT(upkeep_of(jobs, {0, 601, 0}, 100).remove, ElementsAre("old", "middle"));
  EXPECT_THAT(upkeep_of(jobs, {0, 10, 0}, 100).remove, ElementsAre("old", "middle", "new"));
  EXPECT_THAT(upkeep_of(jobs, {95, 0, 0}, 100).remove, ElementsAre("old", "middle"));
  EXPECT_THAT(upkeep_of(jobs, {0, 0, 0}, 100).remove, IsEmpty());
}

TEST(UpkeepOf, KeepsDamagedJobsForInspection) {
  store::JobIndexRow damaged = row("damaged", "finished", 1, 100);
  damaged.damaged = true;
  damaged.packed = 0;
  const UpkeepWork work = upkeep_of({damaged}, {1, 1, 1}, 100);
  EXPECT_THAT(work.remove, IsEmpty());
  EXPECT_THAT(work.pack, IsEmpty());
}

TEST(UpkeepOf, PacksLogsOfEndedJobsAndLongOnes) {
  std::vector<store::JobIndexRow> jobs{row("ended", "finished", 1, 1), row("packed", "finished", 1, 1),
                                       row("short", "deployed", 1, 1), row("long", "deployed", 1, 1)};
  jobs[0].packed = 9;
  jobs[2].packed = 1;
  jobs[3].last_sequence = 1010;
  EXPECT_THAT(upkeep_of(jobs, {0, 0, 1}, 100).pack, UnorderedElementsAre("ended", "long"));
}

/// Two jobs that have ended, and one that has not. Upkeep removes jobs at once, and packs logs.
class UpkeepTest : public ::testing::Test {
 protected:
  UpkeepTest() {
    for (const char* const id : {"a", "b", "c"}) base_.create(id);
    for (const char* const id : {"a", "b"}) base_.append(id, {jobs::JobFinished{}});
    base_.clock().advance(100);
  }
  void tick() {
    due_.perform(now_s());
    base_.settle();
  }
  double now_s() { return base_.clock().now_s(); }
  std::shared_ptr<Upkeep> upkeep(Keep keep) {
    return std::make_shared<Upkeep>(keep, base_.access_to_store(), base_.clock(), due_,
                                    [this](const std::string& job, std::function<void(const Status&)> done) {
                                      to_remove_.emplace_back(job, std::move(done));
                                    });
  }
  std::vector<std::string> removals() {
    std::vector<std::string> jobs;
    for (const auto& [job, done] : to_remove_) jobs.push_back(job);
    return jobs;
  }

  testing::JobsInMemory base_;
  Due due_;
  std::vector<std::pair<std::string, std::function<void(const Status&)>>> to_remove_;
  std::shared_ptr<Upkeep> upkeep_ = upkeep({.finished_s = 50});
};

TEST_F(UpkeepTest, RestsAfterItsWorkAndThenTriesAgainWhatFailed) {
  tick();
  tick();
  to_remove_[0].second(Ok{});
  EXPECT_EQ(due_.next(), std::nullopt) << "one is left";
  to_remove_[1].second(Error{ErrorCode::unavailable, "a client is reading it"});
  EXPECT_EQ(due_.next(), now_s() + 600);
  to_remove_.clear();
  base_.clock().advance(599);
  tick();
  base_.clock().advance(1);
  tick();
  EXPECT_THAT(removals(), IsEmpty());
  tick();
  EXPECT_EQ(removals().size(), 2U) << "both are still in the store of this test";
}

TEST_F(UpkeepTest, AChangedLimitNeedNotWaitForTheEndOfTheRest) {
  upkeep_->set_keep({.unused_s = 1000});
  for (int i = 0; i < 10; ++i) {
    base_.clock().advance(1);
    tick();
  }
  ASSERT_GT(*due_.next(), now_s() + 500);
  upkeep_->set_keep({.finished_s = 50});
  EXPECT_EQ(due_.next(), now_s());
  tick();
  tick();
  EXPECT_THAT(removals(), UnorderedElementsAre("a", "b"));
}

}  // namespace
}  // namespace perseus::work
