#include "server/work/store_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::work {
namespace {

using testing::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A store that answers when base_.settle() is called; the limit is 10 s.
class StoreAccessTest : public ::testing::Test {
 protected:
  Answer<std::int64_t> read_one() {
    Answer<std::int64_t> answer;
    access_.read<std::int64_t>([](store::Store& /*store*/) { return Result<std::int64_t>(1); }, answer.take());
    return answer;
  }
  void pass(double seconds) {
    base_.clock().advance(seconds);
    base_.due().perform(base_.clock().now_s());
  }

  testing::JobsInMemory base_;
  StoreAccess& access_ = base_.access_to_store();
};

TEST_F(StoreAccessTest, AReadIsAnsweredByTheStore) {
  const auto answer = read_one();
  EXPECT_FALSE(answer.given());
  EXPECT_TRUE(access_.is_busy());
  base_.settle();
  ASSERT_TRUE(answer.given());
  EXPECT_EQ(**answer, 1);
  EXPECT_FALSE(access_.is_busy());
  EXPECT_FALSE(base_.due().next());
}

TEST_F(StoreAccessTest, AnUnansweredCallFailsAtTheLimitAndLaterOnesAtOnce) {
  const auto answer = read_one();
  EXPECT_EQ(base_.due().next(), base_.clock().now_s() + 10);
  pass(9.5);
  EXPECT_FALSE(answer.given());
  pass(0.5);
  ASSERT_TRUE(answer.given());
  EXPECT_EQ(answer->error().code, ErrorCode::unavailable);
  const auto next = read_one();
  ASSERT_TRUE(next.given()) << "it would only queue up";
  EXPECT_THAT(next->error().message, HasSubstr("does not answer"));
  base_.settle();  // the late answer reaches no caller a second time
  const auto again = read_one();
  base_.settle();
  EXPECT_TRUE(again->ok());
}

TEST_F(StoreAccessTest, ALongQueueOfReadsThatAdvancesIsNotADeadDatabase) {
  std::vector<Answer<std::int64_t>> queue;
  for (int i = 0; i < 30; ++i) queue.push_back(read_one());
  for (const auto& answer : queue) {
    pass(0.9);
    EXPECT_TRUE(access_.health().answers) << access_.health().problem;
    base_.settle_one();
    ASSERT_TRUE(answer.given());
    EXPECT_TRUE(answer->ok()) << "after " << 0.9 * static_cast<double>(&answer - queue.data() + 1) << " s";
  }
}

TEST_F(StoreAccessTest, ALateReadDoesNotHoldUpWrites) {
  read_one();
  pass(10);
  Answer<Ok> put;
  access_.put_blob({"key", "bytes"}, put.take());
  EXPECT_FALSE(put.given());
  base_.settle();
  EXPECT_TRUE(put->ok());
}

TEST_F(StoreAccessTest, AnAppendReportsThatItIsSlowThenLateAndStillItsOutcome) {
  std::vector<std::string> calls;
  Answer<store::Appended> appended;
  access_.append(
      {}, appended.take(), [&] { calls.emplace_back("slow"); }, [&] { calls.emplace_back("late"); });
  pass(0.9);
  EXPECT_THAT(calls, ElementsAre());
  pass(0.1);
  EXPECT_THAT(calls, ElementsAre("slow"));
  EXPECT_FALSE(access_.writes_late());
  pass(9);
  EXPECT_THAT(calls, ElementsAre("slow", "late"));
  EXPECT_TRUE(access_.writes_late());
  EXPECT_FALSE(appended.given());
  base_.settle();
  EXPECT_TRUE(appended.given());
  EXPECT_FALSE(access_.writes_late());
}

TEST_F(StoreAccessTest, HealthNamesTheProblemAndItsBegin) {
  EXPECT_TRUE(access_.health().answers);
  const double began_s = base_.clock().now_s();
  read_one();
  pass(1);
  EXPECT_FALSE(access_.health().answers);
  EXPECT_EQ(access_.health().problem, "it does not answer");
  EXPECT_EQ(access_.health().since_s, began_s);
  base_.settle();
  EXPECT_TRUE(access_.health().answers);
  base_.database().write_failure = Error{ErrorCode::unavailable, "disk full"};
  Answer<Ok> put;
  access_.put_blob({"key", "bytes"}, put.take());
  base_.settle();
  EXPECT_EQ(access_.health().problem, "disk full");
  base_.database().write_failure.reset();
  access_.probe();  // only a successful write shows that the disk is no longer full
  base_.settle();
  EXPECT_TRUE(access_.health().answers);
}

TEST_F(StoreAccessTest, SaysOnceThatWritesFailAndThatTheyWorkAgain) {
  const auto put = [&] {
    Answer<Ok> answer;
    access_.put_blob({"key", "bytes"}, answer.take());
    base_.settle();
  };
  put();
  EXPECT_THAT(base_.warnings, ElementsAre());
  base_.database().write_failure = Error{ErrorCode::unavailable, "disk full"};
  put();
  put();
  EXPECT_THAT(base_.warnings, ElementsAre("writes fail until this is mended: disk full"));
  base_.database().write_failure.reset();
  put();
  put();
  EXPECT_THAT(base_.warnings, ElementsAre(HasSubstr("disk full"), "the database takes writes again"));
  base_.warnings.clear();
  read_one();
  pass(10);
  EXPECT_THAT(base_.warnings, ElementsAre(HasSubstr("reads fail until this is mended: database: it does not answer")));
  base_.settle();
  EXPECT_EQ(base_.warnings.back(), "the database takes reads again");
}

TEST_F(StoreAccessTest, SaysOnceInAMinuteThatWritesFailByTurns) {
  const auto put = [&](bool fails) {
    base_.database().write_failure.reset();
    if (fails) base_.database().write_failure = Error{ErrorCode::unavailable, "disk full"};
    Answer<Ok> answer;
    access_.put_blob({"key", "bytes"}, answer.take());
    base_.settle();
  };
  for (int k = 0; k < 3; ++k) {
    put(true);
    put(false);
  }
  const std::string again = "the database takes writes again";
  EXPECT_THAT(base_.warnings, ElementsAre(HasSubstr("disk full"), again));
  put(true);
  EXPECT_EQ(base_.warnings.size(), 2U);
  pass(60);
  put(true);
  EXPECT_THAT(base_.warnings, ElementsAre(HasSubstr("disk full"), again, HasSubstr("disk full")));
}

}  // namespace
}  // namespace perseus::work
