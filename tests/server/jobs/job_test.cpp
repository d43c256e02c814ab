// Which events a job refuses, and that a refused one changes nothing.
#include "server/jobs/job.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/jobs/event.h"

namespace perseus::jobs {
namespace {

TEST(StateMachine, OnlyLiveJobsChange) {
  for (std::size_t kind = 0; kind < kNumEventKinds; ++kind) {
    EXPECT_FALSE(next_state(JobState::finished, kind)) << kind_name(kind);
    const bool revives = kind == kind_of_type<JobRevived>();
    EXPECT_EQ(next_state(JobState::expired, kind).has_value(), revives) << kind_name(kind);
    EXPECT_EQ(next_state(JobState::none, kind).has_value(), kind == kind_of_type<JobRegistered>()) << kind_name(kind);
  }
}

TEST(StateMachine, ARefusedEventChangesNothing) {
  Job job;
  job.id = "j";
  ASSERT_TRUE(apply(job, {1, JobRegistered{"", {2, 2, 1}, false, false, std::nullopt, {}, false}}).ok());
  ASSERT_TRUE(apply(job, {2, RankRegistered{0, 0, 0, 0, {}, "", "", {}, {}, {}}}).ok());
  ASSERT_TRUE(apply(job, {2, JobSilent{1}}).ok());
  const Job before = job;
  const std::vector<EventBody> refused{
      JobRegistered{},
      RankRegistered{0, 0, 0, 0, {}, "", "", {}, {}, {}},
      RankRegistered{1, 0, 0, 0, {}, "", "", {}, {}, {}},
      RankRegistered{9, 0, 0, 0, {}, "", "", {}, {}, {}},
      StragglerTookEffect{"s1"},
      StragglerWithdrawn{"s1"},
      PolicyCleared{"pinned"},
      Characterized{"key", 1, 1, 1},
      PlanDeployed{},
      ProfileKnown{"key", "", {2}, "", 0, ""},
      WindowHandedOut{},
  };
  for (const EventBody& body : refused) {
    EXPECT_FALSE(apply(job, {3, body}).ok()) << kind_name(body.index());
    EXPECT_EQ(job, before) << kind_name(body.index());
  }
}

}  // namespace
}  // namespace perseus::jobs
