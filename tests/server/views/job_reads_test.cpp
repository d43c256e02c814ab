// The view and the hosts of a job.
#include "server/views/job_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::views {
namespace {

class JobReadsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  JobReadsTest() { base.create("job"); }
  Result<jobs::JobView> view() {
    return answer_of<jobs::JobView>([&](auto done) { reads.job("job", done); });
  }

  JobReads reads{base.clock(), access, *frontiers, *characterizations, *plans};
};

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
