// The view, the frontiers and the timeline of a job.
#include "server/views/job_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/server/service/service_parts.h"

namespace perseus::views {
namespace {

using testing::Answer;

class JobReadsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  JobReadsTest() { base.create("job"); }
  Result<jobs::JobView> view(const std::string& id = "job") {
    return answer_of<jobs::JobView>([&](auto done) { reads.job(id, done); });
  }
  Result<JobReads::Frontier> frontier(int pipeline, const std::string& id = "job") {
    return answer_of<JobReads::Frontier>([&](auto done) { reads.frontier(id, pipeline, done); });
  }
  Result<jobs::TimelineView> timeline(int pipeline, std::optional<int> point = std::nullopt) {
    return answer_of<jobs::TimelineView>([&](auto done) { reads.timeline("job", pipeline, point, done); });
  }

  JobReads reads{base.clock(), access, *frontiers, *characterizations, *plans};
};

TEST_F(JobReadsTest, AFrontierAndAPlanAreNotFoundUntilTheyExist) {
  EXPECT_EQ(frontier(0).error().message, "job job: pipeline 0 has no frontier yet");
  plan();
  EXPECT_EQ(frontier(0)->get()->key, job().input_of[0]);
  EXPECT_EQ(timeline(0).error().message, "job job: pipeline 0 has no plan yet");
  deploy(1);
  EXPECT_EQ(timeline(0)->point, 1);
  EXPECT_EQ(timeline(0, 0)->point, 0);
  EXPECT_EQ(timeline(0, 10000).error().code, ErrorCode::not_found);
  deploy(-1);
  EXPECT_EQ(timeline(0).error().code, ErrorCode::not_found) << "the highest clocks";
}

TEST_F(JobReadsTest, RanksComeInPagesWithTheirRightsAndTheirLastCall) {
  jobs::RankMeasured measured;
  measured.rank = 1;
  measured.control = "none";
  measured.control_reason = "no permission";
  base.append("job", {measured});
  live().calls.record(1, 42);
  const auto ranks = [&](int after, int limit) {
    return answer_of<jobs::RankPage>([&](auto done) { reads.ranks({"job", after, limit}, done); }).value();
  };
  const jobs::RankPage first = ranks(-1, 1);
  ASSERT_EQ(first.ranks.size(), 1U);
  EXPECT_EQ(first.next, 0);
  EXPECT_EQ(first.ranks[0].control, "") << "it sets clocks";
  EXPECT_EQ(first.ranks[0].last_heard_s, std::nullopt) << "no call since the server started";
  const jobs::RankPage second = ranks(*first.next, 1);
  ASSERT_EQ(second.ranks.size(), 1U);
  EXPECT_EQ(second.next, std::nullopt);
  EXPECT_EQ(second.ranks[0].rank, 1);
  EXPECT_EQ(second.ranks[0].pp_rank, 1);
  EXPECT_EQ(second.ranks[0].control_reason, "no permission");
  EXPECT_EQ(second.ranks[0].last_heard_s, 42);
  EXPECT_TRUE(ranks(1, 9).ranks.empty());
  EXPECT_TRUE(ranks(std::numeric_limits<int>::max(), 9).ranks.empty());
  EXPECT_EQ(ranks(-1, 9).ranks.size(), 2U);
}

/// Two ranks, each on a host of its own.
class JobReadsOfHosts : public JobReadsTest {
 protected:
  JobReadsOfHosts() {
    for (const int rank : {0, 1}) {
      jobs::RankRegistered moved = testing::JobsInMemory::rank_of_stage(rank);
      moved.host = rank == 0 ? "node-a" : "node-b";
      moved.clocks_mhz = {1400, 700};
      moved.epoch = 7;
      base.append("job", {moved});
    }
  }
  jobs::HostPage hosts(jobs::HostQuery query) {
    query.job = "job";
    return answer_of<jobs::HostPage>([&](auto done) { reads.hosts(query, done); }).value();
  }
};

TEST_F(JobReadsOfHosts, RanksHaveTheClocksWantedAndSet) {
  const auto ranks = [&](const std::string& host = "") {
    return answer_of<jobs::RankPage>([&](auto done) { reads.ranks({"job", -1, 9, host}, done); }).value().ranks;
  };
  EXPECT_EQ(ranks()[0].wanted, std::nullopt) << "no plan yet";
  EXPECT_EQ(ranks()[0].clocks, std::nullopt) << "nothing reported";
  plan();
  deploy(-1);
  EXPECT_EQ(ranks()[0].wanted, (jobs::ClockSpan{1400, 1400})) << "the highest clock";
  deploy(0);
  const auto wanted = ranks()[0].wanted;
  ASSERT_TRUE(wanted);
  EXPECT_LT(wanted->least_mhz, 1400) << "the least energy";
  live().clocks.report(1, {700, 3, 2, 1}, 7, 50);
  ASSERT_EQ(ranks("node-b").size(), 1U);
  EXPECT_EQ(ranks("node-b")[0].clocks, (jobs::ClockFigures{700, 3, 2, 1}));
  EXPECT_EQ(ranks("node-b")[0].clocks_at_s, 50);
  live().clocks.report(1, {700, 3, 2, 1}, 6, 60);
  EXPECT_EQ(ranks("node-b")[0].clocks, std::nullopt) << "of a process that no longer holds the rank";
}

TEST_F(JobReadsOfHosts, HostsSumTheirRanks) {
  plan();
  deploy(-1);
  live().calls.record(0, 40);
  live().clocks.report(0, {700, 3, 2, 1}, 7, 50);
  const jobs::HostPage all = hosts({.limit = 9});
  ASSERT_EQ(all.hosts.size(), 2U);
  EXPECT_FALSE(all.more);
  const jobs::HostView &a = all.hosts[0], &b = all.hosts[1];
  EXPECT_EQ(a.host, "node-a");
  EXPECT_EQ(a.ranks, 1);
  EXPECT_EQ(a.wanted, (jobs::ClockSpan{1400, 1400}));
  EXPECT_EQ(a.set, (jobs::ClockSpan{700, 700}));
  EXPECT_EQ(a.clocks, (jobs::ClockFigures{0, 3, 2, 1}));
  EXPECT_EQ(a.last_heard_s, 40);
  EXPECT_EQ(b.clocks, std::nullopt);
  EXPECT_EQ(b.silent, 1);
  EXPECT_TRUE(hosts({.limit = 1}).more);
  ASSERT_EQ(hosts({.after = "node-a", .limit = 9}).hosts.size(), 1U);
  EXPECT_EQ(hosts({.after = "node-a", .limit = 9}).hosts[0].host, "node-b");
  EXPECT_EQ(hosts({.prefix = "node-", .limit = 9}).hosts.size(), 2U);
  EXPECT_TRUE(hosts({.prefix = "gpu-", .limit = 9}).hosts.empty());
}

TEST_F(JobReadsTest, UnknownJobsAndPipelinesAreNamed) {
  EXPECT_EQ(view("nowhere").error().code, ErrorCode::not_found);
  EXPECT_EQ(frontier(0, "nowhere").error().code, ErrorCode::not_found);
  EXPECT_EQ(frontier(1).error().message, "job job: no pipeline 1; it has 0 to 0");
  EXPECT_EQ(timeline(-1).error().message, "job job: no pipeline -1; it has 0 to 0");
}

TEST_F(JobReadsTest, AReadIsNoActivityAndIsAnsweredFromMemory) {
  plan();
  deploy(0);
  live().last_seen_s = 0;
  Answer<jobs::JobView> answer;
  reads.job("job", answer.take());
  ASSERT_TRUE(answer.given());
  EXPECT_TRUE((*answer)->per_iteration);
  EXPECT_EQ(live().last_seen_s, 0);
}

/// The next server on the database of a job with a plan.
class JobReadsAfterARestart : public JobReadsTest {
 protected:
  JobReadsAfterARestart() {
    plan();
    deploy(0);
  }
  Result<jobs::JobView> next_view() {
    return next.answer_of<jobs::JobView>([&](auto done) { next_reads.job("job", done); });
  }

  testing::ServiceParts next{database};
  JobReads next_reads{next.base.clock(), next.access, *next.frontiers, *next.characterizations, *next.plans};
};

TEST_F(JobReadsAfterARestart, TheFirstViewHasTheSavings) {
  const auto after = next_view();
  ASSERT_TRUE(after.ok() && after->per_iteration);
  EXPECT_EQ(after->per_iteration->energy, view()->per_iteration->energy);
}

TEST_F(JobReadsAfterARestart, TheViewOfAnEndedJobToo) {
  base.append("job", {jobs::JobFinished{}});
  EXPECT_EQ(view()->per_iteration, std::nullopt) << "it saves nothing now";
  EXPECT_EQ(next_view()->plan->t_max, view()->plan->t_max);
}

TEST_F(JobReadsAfterARestart, AViewDoesNotWaitForPlanning) {
  database->remove_blob("frontier/" + job().input_of[0]);
  EXPECT_EQ(next_view()->per_iteration, std::nullopt);
}

TEST_F(JobReadsAfterARestart, AViewWithoutSavingsIsBetterThanNoneWhileTheStoreFails) {
  EXPECT_EQ(next.answer_of<Ok>([&](auto done) {
                  next.access.show<Ok>(
                      "job", [](live::LiveJob&) { return Result<Ok>(Ok{}); }, done);
                })
                .ok(),
            true);
  database->failure = Error{ErrorCode::unavailable, "the disk is full"};
  EXPECT_EQ(next_view()->plan->version, 1);
}

}  // namespace
}  // namespace perseus::views
