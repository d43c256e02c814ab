// Lines of the server's log on a job.
#include "server/savings/job_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::savings {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

/// Two stages at 200 W, a frontier of two points.
class JobLines : public ::testing::Test {
 protected:
  JobLines() {
    auto pipeline = std::make_shared<jobs::CharacterizedPipeline>();
    pipeline->dag.accelerators = {1, 1};
    pipeline->dag.blocking_power = Watts(100);
    pipeline->frontier.points = {{Seconds(2), Joules(560), Joules(160), {}, {}},
                                 {Seconds(1), Joules(400), Joules(200), {}, {}}};
    pipeline->all_max_time = Seconds(1);
    pipeline->all_max_effective_energy = Joules(300);
    for (const char* key : {"a", "b"}) frontiers_[key] = pipeline;
    job_.id = "j_1";
    job_.created_s = 100;
    job_.spec.name = "gpt3";
    job_.spec.degrees = {1, 2, 1};
    job_.spec.facts["accelerator"] = "NVIDIA H100";
    job_.input_of = {"a"};
    job_.characterized = {{"a", {2, 1, 2}}, {"b", {2, 1, 2}}};
  }
  std::string line(jobs::EventBody body, double at_s = 100) {
    return log_line(job_, frontiers_, {at_s, std::move(body)});
  }
  std::string deploy(const std::string& input, int point, const std::string& reason) {
    if (job_.plan) job_.earlier_plans.push_back(*job_.plan);
    job_.plan = jobs::PlanDeployed{++job_.version, 12, {{input, point}}, {0}, {}, {}, reason};
    return line(*job_.plan);
  }

  jobs::Job job_;
  policies::Frontiers frontiers_;
};

TEST_F(JobLines, TheStartNamesTheJobItsRanksGpuScheduleAndProfile) {
  EXPECT_EQ(line(job_.spec),
            "job j_1: registered as 'gpt3': 2 ranks (dp 1, pp 2, tp 1) on NVIDIA H100; no profile yet");
  job_.spec.profile_online = true;
  job_.spec.shape = jobs::PipelineShape{};
  job_.spec.shape->microbatches = 8;
  EXPECT_THAT(line(job_.spec), EndsWith("; 1f1b, 8 microbatches; will be profiled online"));
  job_.schedule = "gpipe";
  job_.microbatches = 4;
  job_.profile_source = "sample";
  EXPECT_THAT(line(job_.spec), EndsWith("; gpipe, 4 microbatches; profile known: sample"));
}

TEST_F(JobLines, AProfileThatComesLaterHasALineOfItsOwn) {
  const jobs::ProfileKnown known{"a", "uploaded", {}, "1f1b", 2, ""};
  EXPECT_EQ(line(known), "") << "known from the start";
  EXPECT_EQ(line(known, 101), "job j_1: profile known: uploaded");
  EXPECT_EQ(line(jobs::ProfilingStarted{}), "job j_1: profiling started");
}

TEST_F(JobLines, APlanHasItsPointItsEstimateAndTheReason) {
  EXPECT_EQ(deploy("a", 1, "no straggler: T_max = 1 s"),
            "job j_1: plan 1 from iteration 12: point 1 of 2; est. 1.0000 s and 400.00 J an iteration, plan saves "
            "20.00 % est.; no straggler: T_max = 1 s");
  EXPECT_THAT(deploy("a", 0, "pipeline 0 is 2 times slower"), EndsWith(" est.; pipeline 0 is 2 times slower"));
  EXPECT_THAT(deploy("b", 0, "no straggler"), EndsWith("; new frontier; no straggler"));
  frontiers_.clear();
  EXPECT_THAT(deploy("b", 0, "power cap 9 W"), EndsWith("point 0 of 2; power cap 9 W")) << "no invented figures";
  EXPECT_THAT(deploy("", -1, "maximum clock: no profile"), HasSubstr("iteration 12: highest clocks; "));
}

TEST_F(JobLines, TheLastLineNamesTheSavingAndItsSource) {
  EXPECT_EQ(line(jobs::JobFinished{}), "job j_1: finished; no iterations under a plan were reported");
  job_.total.iterations = 30;
  job_.total.saved_j = 900;
  EXPECT_EQ(line(jobs::JobFinished{}), "job j_1: finished; 30 iterations saved 900.00 J, measured");
  job_.estimated.iterations = 10;
  job_.estimated.saved_j = 300;
  EXPECT_THAT(line(jobs::JobExpired{}), EndsWith("; 30 iterations saved 900.00 J, 300.00 J of it estimated"));
  job_.estimated.iterations = 30;
  EXPECT_THAT(line(jobs::JobFinished{}), EndsWith(" saved 900.00 J, estimated"));
}

TEST_F(JobLines, OrdinaryEventsHaveNone) {
  EXPECT_EQ(line(jobs::JobSeen{}), "");
  EXPECT_EQ(line(jobs::IterationsCounted{10, 5, 9, 10, true}), "");
  EXPECT_EQ(line(jobs::RankRegistered{}), "");
}

}  // namespace
}  // namespace perseus::savings
