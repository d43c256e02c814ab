#include "server/profiles/modeled_saving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/partitioner/gpu_model.h"

namespace perseus::profiles {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Two stages of which the second is twice as long, at 1740 MHz alone.
OneClockMeasurement two_stages(const std::string& gpu) {
  OneClockMeasurement measured;
  for (int stage = 0; stage < 2; ++stage) {
    for (const auto& [instruction, time_s] : {std::pair{"forward", 0.1}, {"backward", 0.2}}) {
      const double own_s = time_s * (stage + 1);
      measured.profile.entries.push_back(
          {stage, instruction, {{Megahertz(1740), Seconds(own_s), Joules(250 * own_s), {}, {}, 1}}});
    }
  }
  measured.profile.accelerators = {1, 1};
  measured.shape.microbatches = 4;
  measured.shape.blocking_power = Watts(70);
  measured.gpu = gpu;
  measured.clocks = partitioner::clocks_of(*partitioner::gpu_named("A40"));
  measured.gpus = 2;
  return measured;
}

TEST(ModeledSaving, HasAnErrorBarAndTheMeasuredIteration) {
  StopCheck never;
  const auto saving = saving_modeled(two_stages("NVIDIA A40"), never);
  ASSERT_TRUE(saving);
  EXPECT_GT(*saving->saving_pct, 5);
  EXPECT_LT(*saving->saving_pct, 30);
  EXPECT_GT(*saving->saving_stddev_pct, 1);
  // 4 microbatches of 0.6 s, after and before stage 0's 0.1 s and 0.2 s; computing 3.6 s of 250 W, the rest at 70 W.
  EXPECT_THAT(saving->text, AllOf(HasSubstr("by a model of NVIDIA A40"), HasSubstr("an iteration takes 2.7000 s"),
                                  HasSubstr("1,026.0 J on 2 GPUs (380 W)")));
}

TEST(ModeledSaving, EightTimesThePipelinesTakeEightTimesTheEnergy) {
  OneClockMeasurement measured = two_stages("NVIDIA L4");
  measured.gpus = 16;
  StopCheck never;
  EXPECT_THAT(saving_modeled(measured, never)->text, HasSubstr("8,208.0 J on 16 GPUs"));
}

TEST(ModeledSaving, NamesWhatItCannotModel) {
  StopCheck never;
  const auto other = saving_modeled(two_stages("NVIDIA L4"), never);
  EXPECT_FALSE(other->saving_pct);
  EXPECT_THAT(other->text, AllOf(HasSubstr("no saving is modeled: the GPU is 'NVIDIA L4', and the model knows A40"),
                                 HasSubstr("an iteration takes 2.7000 s")));
  EXPECT_THAT(saving_modeled(two_stages(""), never)->text, HasSubstr("have not named one GPU that all of them use"));
  OneClockMeasurement lowest = two_stages("NVIDIA A40");
  lowest.clocks = {Megahertz(1740)};
  EXPECT_THAT(saving_modeled(lowest, never)->text, HasSubstr("the GPU has no clock between that and its half"));
  OneClockMeasurement wrong = two_stages("NVIDIA A40");
  wrong.shape.schedule = "none such";
  EXPECT_THAT(saving_modeled(wrong, never)->text, HasSubstr("no saving is modeled: schedule: 'none such'"));
}

TEST(ModeledSaving, CountsTheDrawsPlannedBeforeItIsStopped) {
  StopCheck at_once([] { return true; }, 1);
  EXPECT_FALSE(saving_modeled(two_stages("NVIDIA A40"), at_once));
  int all = 0;
  StopCheck counts([&] { return ++all < 0; }, 1);
  ASSERT_TRUE(saving_modeled(two_stages("NVIDIA A40"), counts));
  int questions = 0;
  StopCheck halfway([&] { return ++questions > all / 2; }, 1);
  const auto saving = saving_modeled(two_stages("NVIDIA A40"), halfway);
  ASSERT_TRUE(saving);
  EXPECT_LT(questions, all);
  EXPECT_GT(*saving->saving_pct, 5);
}

}  // namespace
}  // namespace perseus::profiles
