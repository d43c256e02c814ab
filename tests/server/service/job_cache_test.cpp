// Jobs that another server changes: only the newer events are read and folded.
#include "server/service/job_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::service {
namespace {

using ::testing::ElementsAre;
using testing::JobsInMemory;

/// Two servers on one database; the second one has the job in memory.
class JobCacheTest : public ::testing::Test {
 protected:
  JobCacheTest() {
    first_.create("job");
    look(second_);
  }
  const jobs::Job* look(JobsInMemory& server) {
    const jobs::Job* seen = nullptr;
    server.jobs().with("job", [&](const Result<LiveJob*>& live) { seen = live ? &(*live)->job : nullptr; });
    server.settle();
    return seen;
  }

  std::shared_ptr<store::MemoryDatabase> database_ = std::make_shared<store::MemoryDatabase>();
  JobsInMemory first_{database_}, second_{database_};
};

TEST_F(JobCacheTest, AnotherServersEventsAreFoldedWithoutTheEarlierOnes) {
  std::vector<std::int64_t> news;
  second_.committed = [&](LiveJob&, const std::vector<SequencedEvent>& events) {
    for (const SequencedEvent& event : events) news.push_back(event.sequence);
  };
  // The earlier events cannot be read any longer: only a tail can.
  for (store::StoredEvent& event : database_->jobs.at("job").events) event.body = "unreadable";
  first_.append("job", {jobs::PolicySet{jobs::PowerCap{Watts(900)}}, jobs::JobSeen{}});
  const jobs::Job* const seen = look(second_);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(*seen, first_.live("job").job);
  EXPECT_THAT(news, ElementsAre(4, 5));
}

TEST_F(JobCacheTest, AJobThatWasRemovedAndMadeAgainIsReadWhole) {
  database_->jobs.erase("job");
  JobsInMemory third(database_);
  third.create("job");  // as many events, of another job
  third.append("job", {jobs::PolicySet{jobs::PowerCap{Watts(900)}}});
  second_.jobs().on_foreign("job", 0);
  second_.jobs().on_foreign("job", 4);
  second_.settle();
  const jobs::Job* const seen = look(second_);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(*seen, third.live("job").job);
}

TEST_F(JobCacheTest, ChangesInProgressAreDecidedAgainOnTheNewerJob) {
  first_.append("job", {jobs::PolicySet{jobs::PowerCap{Watts(900)}}});
  std::vector<std::size_t> policies;  // that each decision saw
  second_.jobs().execute("job", {[&](const jobs::Job& job, double) {
                                   policies.push_back(job.policies.size());
                                   return Result<Decision>(Decision{{jobs::JobSeen{}}, {}});
                                 },
                                 {}});
  second_.settle();
  EXPECT_EQ(policies.back(), 1U);
  EXPECT_EQ(second_.live("job").job.sequence, 5);
  const jobs::Job* const seen = look(first_);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(*seen, second_.live("job").job);
}

}  // namespace
}  // namespace perseus::service
