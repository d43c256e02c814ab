// Reading of the published artifact's folder, and the two accountings on a case worked by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "evaluation/reproduction/artifact.h"
#include "evaluation/reproduction/emulated_case.h"
#include "planning/baselines/methods.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "tests/support/scratch_folder.h"

namespace perseus::reproduction {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// An artifact's folder.
class Folder {
 public:
  void file(const std::string& name, const std::string& content) const {
    fs::create_directories(fs::path(scratch_.path(name)).parent_path());
    (void)scratch_.file(name, content);
  }
  [[nodiscard]] fs::path path() const { return scratch_.path(); }

 private:
  testing::ScratchFolder scratch_;
};

const std::string profile_text =
    "stage,instruction,frequency,time,energy\n"
    "0,forward,1000,1.0,100\n0,backward,1000,2.0,200\n";
const std::string profile_name = "emulation/stage_profile/tiny+gpu_x_bf16.csv";
const std::string envpipe_name = "emulation/envpipe_result.csv";
const std::string frontier_name = "emulation/iteration_time_energy/gpu_x/tiny_bf16_mb4.csv";

TEST(ReadArtifact, TakesWhicheverModelsAndGpusAreThere) {
  const Folder folder;
  folder.file(profile_name, profile_text);
  folder.file("emulation/stage_profile/big-1+a40_bf16.csv", profile_text);
  folder.file("emulation/stage_profile/notes.txt", "not a profile");
  folder.file(envpipe_name,
              "model,precision,device,num_microbatches,num_pipelines,iteration_time,energy\n"
              "tiny,bf16,gpu_x,4,2,120,9600\n");
  folder.file(frontier_name, "time,energy\n5,10\n4,12\n");
  const Artifact artifact = read_artifact(folder.path()).value();
  ASSERT_EQ(artifact.profiles.size(), 2u);
  EXPECT_EQ(artifact.profiles[0].model, "big-1");
  EXPECT_EQ(artifact.profiles[0].gpu, "a40");
  EXPECT_EQ(artifact.profiles[1].gpu, "gpu_x");
  EXPECT_EQ(artifact.envpipe_of(artifact.profiles[0], 4), nullptr);
  EXPECT_EQ(artifact.envpipe_of(artifact.profiles[1], 5), nullptr);
  const PublishedIteration* envpipe = artifact.envpipe_of(artifact.profiles[1], 4);
  ASSERT_NE(envpipe, nullptr);
  EXPECT_EQ(envpipe->time, Seconds(12));
  EXPECT_EQ(envpipe->energy, Joules(120));
  const auto frontier = read_published_frontier(folder.path(), artifact.profiles[1], 4).value();
  ASSERT_TRUE(frontier.has_value());
  ASSERT_EQ(frontier->size(), 2u);
  EXPECT_EQ((*frontier)[1].planned_time, Seconds(4));
  EXPECT_EQ((*frontier)[1].energy, Joules(12));
  EXPECT_FALSE(read_published_frontier(folder.path(), artifact.profiles[1], 5).value().has_value());
  EXPECT_THAT(artifact.left_out, ElementsAre(HasSubstr("notes.txt")));

  folder.file("emulation/iteration_time_energy/gpu_x/tiny_bf16_mb32.csv.gz", "");
  folder.file("emulation/iteration_time_energy/gpu_x/tiny_bf16_mbmany.csv", "");
  folder.file("emulation/iteration_time_energy/gpu_x/tiny-2_bf16_mb8.csv", "");
  EXPECT_THAT(published_microbatches(folder.path(), artifact, artifact.profiles[1]), ElementsAre(4, 32));
  EXPECT_THAT(published_microbatches(folder.path(), artifact, artifact.profiles[0]), ElementsAre());
}

TEST(ReadArtifact, TakesTheEnvPipeResultGzippedAsWell) {
  const Folder folder;
  folder.file(profile_name, profile_text);
  folder.file(envpipe_name + ".gz", "model,device,num_microbatches,iteration_time,energy\ntiny,gpu_x,4,120,9600\n");
  EXPECT_EQ(read_artifact(folder.path()).value().envpipe.size(), 1u);
}

TEST(ReadArtifact, FailsIfNoProfileIsValid) {
  const Folder folder;
  folder.file(profile_name, "stage,instruction\n");
  const auto artifact = read_artifact(folder.path());
  ASSERT_FALSE(artifact.ok());
  EXPECT_EQ(artifact.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(artifact.error().message, HasSubstr("tiny+gpu_x_bf16.csv:1: missing columns"));
}

TEST(ReadArtifact, RefusesAFolderWithoutProfiles) {
  const Folder folder;
  const auto missing = read_artifact(folder.path() / "nowhere");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr("nowhere/emulation/stage_profile: no such directory"));
  folder.file("emulation/stage_profile/_bf16.csv", profile_text);
  folder.file("emulation/stage_profile/+gpu_bf16.csv", profile_text);
  folder.file("emulation/stage_profile/model+_bf16.csv", profile_text);
  const auto none = read_artifact(folder.path());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
  EXPECT_THAT(none.error().message, HasSubstr("no profiles; expected files named MODEL+GPU_bf16.csv"));
}

TEST(ReadArtifact, SkipsBadRowsNamingFileAndLine) {
  const std::string header = "model,precision,device,num_microbatches,num_pipelines,iteration_time,energy\n";
  const struct {
    std::string name, content, says;
  } bad[] = {
      {"emulation/stage_profile/bad+gpu_x_bf16.csv", profile_text + "0,forward,900,-1,1\n", "_bf16.csv:4:"},
      {"emulation/stage_profile/notes.txt", "", "notes.txt: not named MODEL+GPU_bf16.csv"},
      {"emulation/stage_profile/cut+gpu_x_bf16.csv.gz", "\x1f\x8b\x08", "cut+gpu_x_bf16.csv.gz: broken gzip file"},
      {profile_name + ".gz", profile_text, "also exists without .gz"},
      {envpipe_name, "", "envpipe_result.csv: empty; needed: a header line with model, device"},
      {envpipe_name, "model,device\n", "envpipe_result.csv:1: missing columns: num_microbatches"},
      {envpipe_name, header + "tiny,bf16,gpu_x,4,2,0,5\n", ":2: iteration_time: '0'; allowed: a number > 0"},
      {envpipe_name, header + "tiny,bf16,gpu_x,4,2,5,nan\n", ":2: energy: 'nan'"},
      {envpipe_name, header + "tiny,bf16,gpu_x,four,2,5,5\n",
       ":2: num_microbatches: 'four'; allowed: an integer from 1"},
      {envpipe_name, header + "tiny,bf16\n", ":2: num_microbatches: is missing"},
  };
  for (const auto& [name, content, says] : bad) {
    const Folder folder;
    folder.file(profile_name, profile_text);
    folder.file(name, content);
    const auto artifact = read_artifact(folder.path());
    ASSERT_TRUE(artifact.ok()) << artifact.error().message;
    EXPECT_THAT(artifact->left_out, ElementsAre(HasSubstr(says)));
    ASSERT_EQ(artifact->profiles.size(), 1u) << "what is wrong with one file does not stop the others";
    EXPECT_EQ(artifact->profiles[0].model, "tiny");
  }
  const Folder folder;
  folder.file(profile_name, profile_text);
  folder.file(envpipe_name, header + "tiny,bf16,gpu_x,1,2,1,1\nshort\ntiny,bf16,gpu_x,2,2,1,1\n\"never ends,1\n");
  const Artifact artifact = read_artifact(folder.path()).value();
  EXPECT_THAT(artifact.left_out,
              ElementsAre(HasSubstr(":3: num_microbatches: is missing"), HasSubstr(":5: a quote that never ends")));
  EXPECT_EQ(artifact.envpipe.size(), 2u) << "rows before and after a bad one";
  folder.file(frontier_name, "time,energy\n");
  EXPECT_THAT(read_published_frontier(folder.path(), artifact.profiles[0], 4).error().message, HasSubstr("no rows"));
  folder.file(frontier_name, "time,energy\n5,x\n");
  EXPECT_THAT(read_published_frontier(folder.path(), artifact.profiles[0], 4).error().message,
              HasSubstr(":2: energy: 'x'"));
}

// One stage, one microbatch, N P = 10 W. Forward: 1.0 s with 100 J or 2.1 s with 60 J; backward: 2.4 s, 200 J.
// tau = 0.5 s floors the durations to 1.0, 2.0 and 2.0: planned times 4.0 (the start, not published), 3.5, 3.0;
// measured ones 4.5 and 3.4. Effective energies are planned with floored durations, too: forward 90 and 40 J, by a
// straight line 65 J at 1.5 s, which no clock reaches; backward 180 J. The reference is 90 + 176 J.
EmulatedCase case_by_hand() {
  const Folder folder;
  folder.file(profile_name,
              "stage,instruction,frequency,time,energy\n"
              "0,forward,1000,1.0,100\n0,forward,500,2.1,60\n0,backward,1000,2.4,200\n");
  const Artifact artifact = read_artifact(folder.path()).value();
  const model::ComputationDag dag =
      model::build_dag(artifact.profiles[0].profile, model::make_schedule("1f1b", {1, 1, 1}).value(),
                       {Watts(10), Seconds(0)})
          .value();
  const report::IterationCost envpipe{Seconds(3.4), Joules(300), {}};
  return EmulatedCase::plan(dag, Seconds(0.5), {}, envpipe).value();
}

constexpr double kOfAll = 90 + 176 + 10 * 5.1;  // J of a pipeline at maximum clock that waits for 5.1 s

TEST(EmulatedCase, AccountsForPlannedAndForMeasuredTimes) {
  const EmulatedCase plans = case_by_hand();
  EXPECT_NEAR(plans.all_max().time.value(), 3.4, 1e-12);
  EXPECT_NEAR(plans.all_max().energy.value(), 300, 1e-9);
  EXPECT_NEAR(plans.planned_fastest().value(), 3.0, 1e-12);
  EXPECT_NEAR(plans.planned_slowest().value(), 3.5, 1e-12);
  EXPECT_NEAR(plans.fastest().value(), 3.4, 1e-12);

  const EmulatedCase::CaseSavings fastest = plans.at_fastest();
  EXPECT_NEAR(fastest.paper_planned_pct, -100 * 4 / (90 + 176 + 10 * 3.0), 1e-4);
  EXPECT_NEAR(fastest.paper_realized_pct, 0, 1e-9);
  EXPECT_NEAR(fastest.ours_realized_pct, 0, 1e-9);
  EXPECT_NEAR(fastest.bound_pct, 0, 1e-6);
  EXPECT_NEAR(*fastest.envpipe_pct, 0, 1e-9);

  // T' is 1.2 * 3.0 = 3.6 s as planned, for the baseline too; as measured 1.2 * 3.4 = 4.08 s, too short for 4.5 s.
  const EmulatedCase::CaseSavings little = plans.at_slowdown(1.2);
  EXPECT_NEAR(little.paper_planned_pct, 100 * (25 - 4) / (90 + 176 + 10 * 3.6), 1e-4);
  EXPECT_NEAR(little.paper_realized_pct, 0, 1e-9);
  EXPECT_NEAR(little.ours_realized_pct, 0, 1e-9);
  // T' = 1.5 * 3.4 = 5.1 s: the slow forward fits and saves 90 - 39 J.
  const EmulatedCase::CaseSavings slow = plans.at_slowdown(1.5);
  EXPECT_NEAR(slow.paper_realized_pct, 100 * 51 / kOfAll, 1e-9);
  EXPECT_NEAR(slow.ours_realized_pct, 100 * 51 / kOfAll, 1e-9);
  EXPECT_NEAR(slow.bound_pct, 100 * 51 / kOfAll, 1e-6);
  EXPECT_NEAR(*slow.envpipe_pct, 0, 1e-9);
}

TEST(EmulatedCase, CountsAJobWithAStraggler) {
  const EmulatedCase plans = case_by_hand();
  // Three pipelines, one of them a straggler at 1.5 times the energy of its fastest plan; the other two save 51 J each.
  const EmulatedCase::OfCluster job = plans.of_cluster(1.5, 3);
  const double whole = 2 * kOfAll + 1.5 * 300;
  EXPECT_NEAR(job.ours_realized.intrinsic_pct, 0, 1e-9);
  EXPECT_NEAR(job.ours_realized.total_pct, 100 * 2 * 51 / whole, 1e-9);
  EXPECT_NEAR(job.ours_realized.beyond_fastest_pct, 100 * 2 * 51 / whole, 1e-9);
  EXPECT_NEAR(job.envpipe->total_pct, 0, 1e-9);
  // As planned, T' = 1.5 * 3.0 = 4.5 s: 3.5 s needs 65 + 180 + 35 = 280 J, 3.0 s needs 90 + 180 + 30 = 300 J; the
  // straggler takes 1.5 * 300 J, and at maximum clock 1.5 * 296 J.
  const double planned_fast = 2 * (270 + 45) + 450.0, planned = 2 * (245 + 45) + 450.0;
  const double planned_max = 2 * (266 + 45) + 1.5 * 296;
  EXPECT_NEAR(job.paper_planned.total_pct, 100 * (1 - planned / planned_max), 1e-4);
  EXPECT_NEAR(job.paper_planned.intrinsic_pct, 100 * (1 - planned_fast / planned_max), 1e-4);
  EXPECT_NEAR(job.paper_planned.beyond_fastest_pct, 100 * (1 - planned / planned_fast), 1e-4);
}

TEST(EmulatedCase, HasTheBaselinesOnTheSameDag) {
  const EmulatedCase plans = case_by_hand();
  const EmulatedCase::CaseSavings little = plans.at_slowdown(1.2), slow = plans.at_slowdown(1.5);
  // The baselines on the same DAG: a plan of 4.5 s saves nothing if T' is less, else 51 J.
  for (std::size_t k = 0; k < baselines::baseline_methods().size(); ++k) {
    const std::string name(baselines::baseline_methods()[k].name);
    const bool has_fast_plan = name != "min-energy";
    const bool has_slow_plan = name != "all-max" && name != "envpipe";
    ASSERT_EQ(little.baselines_pct[k].has_value(), has_fast_plan) << name;
    EXPECT_NEAR(little.baselines_pct[k].value_or(0), 0, 1e-9) << name;
    ASSERT_TRUE(slow.baselines_pct[k].has_value()) << name;
    EXPECT_NEAR(*slow.baselines_pct[k], has_slow_plan ? 100 * 51 / kOfAll : 0, 1e-9) << name;
  }
}

}  // namespace
}  // namespace perseus::reproduction
