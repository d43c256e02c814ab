#include "server/live/job_wakes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::live {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobWakesTest : public ::testing::Test {
 protected:
  JobWakesTest() { base_.create("job"); }
  std::vector<std::string> woken(double now_s) {
    due_.perform(now_s);
    return std::exchange(hooks_.woken, {});
  }
  LiveJob& live() { return base_.live("job"); }

  testing::JobsInMemory base_;
  testing::TestHooks hooks_;
  JobIndex index_{hooks_};
  work::Due due_;
  JobWakes wakes_{hooks_, index_, due_};
};

TEST_F(JobWakesTest, TheWakeFollowsTheStateOfTheJob) {
  hooks_.next_due_s = 100;
  wakes_.set(live(), 0);
  EXPECT_EQ(due_.next(), 100);
  hooks_.next_due_s = 50;
  wakes_.set(live(), 0);
  EXPECT_EQ(due_.next(), 50);
  EXPECT_THAT(woken(49), IsEmpty());
  EXPECT_THAT(woken(50), ElementsAre("job"));
  EXPECT_FALSE(due_.next()) << "the former wake is gone, too";
  hooks_.next_due_s.reset();
  wakes_.set(live(), 50);
  EXPECT_FALSE(due_.next());
}

TEST_F(JobWakesTest, AWakeOfTheIndexIsReplacedByThatOfTheJobInMemory) {
  index_["job"].next_wake_s = 10;
  wakes_.put(10, "job");
  hooks_.next_due_s = 20;
  wakes_.set(live(), 0);
  EXPECT_EQ(due_.next(), 20);
}

TEST_F(JobWakesTest, DueJobsComeInOrderAndThoseThatCouldNotBeReadAgain) {
  wakes_.put(3, "late");
  wakes_.put(1, "early");
  wakes_.put(9, "later");
  EXPECT_THAT(woken(5), ElementsAre("early", "late"));
  wakes_.put(7, "early");
  EXPECT_EQ(due_.next(), 7);
}

TEST_F(JobWakesTest, AForgottenJobHasNoWake) {
  wakes_.set_to(live(), 5);
  EXPECT_EQ(due_.next(), 5);
  wakes_.forget(live());
  EXPECT_FALSE(due_.next());
}

}  // namespace
}  // namespace perseus::live
