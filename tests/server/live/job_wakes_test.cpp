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
  JobWakesTest() {
    base_.create("job");
    hooks_.next_wake = [this](const LiveJob& /*live*/, double /*now_s*/) { return next_s_; };
  }
  LiveJob& live() { return base_.live("job"); }

  testing::JobsInMemory base_;
  JobHooks hooks_;
  JobIndex index_;
  JobWakes wakes_{hooks_, index_};
  std::optional<double> next_s_;
};

TEST_F(JobWakesTest, TheWakeFollowsTheStateOfTheJob) {
  next_s_ = 100;
  wakes_.set(live(), 0);
  EXPECT_EQ(wakes_.next(), 100);
  next_s_ = 50;
  wakes_.set(live(), 0);
  EXPECT_EQ(wakes_.next(), 50);
  EXPECT_THAT(wakes_.take_due(49), IsEmpty());
  EXPECT_THAT(wakes_.take_due(50), ElementsAre("job"));
  EXPECT_FALSE(wakes_.next()) << "the former wake is gone, too";
  next_s_.reset();
  wakes_.set(live(), 50);
  EXPECT_FALSE(wakes_.next());
}

TEST_F(JobWakesTest, AWakeOfTheIndexIsReplacedByThatOfTheJobInMemory) {
  index_["job"].next_wake_s = 10;
  wakes_.put(10, "job");
  next_s_ = 20;
  wakes_.set(live(), 0);
  EXPECT_EQ(wakes_.next(), 20);
}

TEST_F(JobWakesTest, DueJobsComeInOrderAndThoseThatCouldNotBeReadAgain) {
  wakes_.put(3, "late");
  wakes_.put(1, "early");
  wakes_.put(9, "later");
  EXPECT_THAT(wakes_.take_due(5), ElementsAre("early", "late"));
  wakes_.put(7, "early");
  EXPECT_EQ(wakes_.next(), 7);
}

TEST_F(JobWakesTest, AForgottenJobHasNoWake) {
  wakes_.set_to(live(), 5);
  EXPECT_EQ(wakes_.next(), 5);
  wakes_.forget(live());
  EXPECT_FALSE(wakes_.next());
}

}  // namespace
}  // namespace perseus::live
