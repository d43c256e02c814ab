// The changes that wait for an append, and the append that they make.
#include "server/live/job_outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::live {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class JobOutboxTest : public ::testing::Test {
 protected:
  /// An entry with an event, whose client waits.
  JobOutbox::Entry entry(std::int64_t sequence, std::vector<store::Blob> blobs = {}) {
    const JobCommand command{{}, [this](const Status&) { ++answers_; }};
    return {command, {{sequence, {1, jobs::JobSeen{}}}}, std::move(blobs), {}};
  }

  JobOutbox outbox_;
  int answers_ = 0;
};

TEST_F(JobOutboxTest, AnAppendBringsAllThatWaitsInOrder) {
  outbox_.add(entry(4));
  outbox_.add(entry(5));
  const store::Append append = outbox_.begin_append("job", 3);
  EXPECT_EQ(append.job, "job");
  EXPECT_EQ(append.expected_sequence, 3);
  const std::string body = jobs::format_event({1, jobs::JobSeen{}});
  EXPECT_THAT(append.bodies, ElementsAre(body, body));
  EXPECT_TRUE(outbox_.is_appending());
  const std::vector<JobOutbox::Entry> entries = outbox_.end_append();
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_EQ(entries[0].events[0].sequence, 4);
  EXPECT_EQ(entries[1].events[0].sequence, 5);
}

TEST_F(JobOutboxTest, ChangesDuringAnAppendWaitForTheNextOne) {
  outbox_.add(entry(4));
  EXPECT_FALSE(outbox_.all_durable());
  outbox_.begin_append("job", 3);
  EXPECT_TRUE(outbox_.empty());
  EXPECT_FALSE(outbox_.all_durable());
  outbox_.add(entry(5));
  EXPECT_THAT(outbox_.end_append(), SizeIs(1));
  EXPECT_FALSE(outbox_.is_appending());
  EXPECT_FALSE(outbox_.all_durable());
  EXPECT_THAT(outbox_.begin_append("job", 4).bodies, SizeIs(1));
  outbox_.end_append();
  EXPECT_TRUE(outbox_.all_durable());
}

TEST_F(JobOutboxTest, TheJobHoldsItsBlobsAndTheFrontiersOfItsInputs) {
  outbox_.add(entry(4, {{"input/a", "bytes"}, {"profile/b", "bytes"}}));
  const store::Append append = outbox_.begin_append("job", 3);
  EXPECT_THAT(append.blobs, SizeIs(2));
  EXPECT_THAT(append.holds, ElementsAre("input/a", "frontier/a", "profile/b"));
}

TEST_F(JobOutboxTest, ABlobIsPendingUntilItsAppendIsOver) {
  EXPECT_FALSE(outbox_.is_pending("input/a"));
  outbox_.add(entry(4, {{"input/a", "bytes"}}));
  EXPECT_TRUE(outbox_.is_pending("input/a"));
  EXPECT_FALSE(outbox_.is_pending("input/b"));
  outbox_.begin_append("job", 3);
  EXPECT_TRUE(outbox_.is_pending("input/a"));
  outbox_.end_append();
  EXPECT_FALSE(outbox_.is_pending("input/a"));
}

TEST_F(JobOutboxTest, CommandsAreTakenAndTheirEventsStay) {
  outbox_.add(entry(4));
  outbox_.begin_append("job", 3);
  outbox_.add(entry(5));
  outbox_.put_off({entry(0).command});
  for (const JobCommand& command : outbox_.take_commands()) command.done(Ok{});
  EXPECT_EQ(answers_, 3);
  EXPECT_THAT(outbox_.take_commands(), IsEmpty());
  EXPECT_THAT(outbox_.end_append(), SizeIs(1));
  EXPECT_FALSE(outbox_.empty());
  EXPECT_THAT(outbox_.give_up(), IsEmpty());
  EXPECT_TRUE(outbox_.all_durable());
}

}  // namespace
}  // namespace perseus::live
