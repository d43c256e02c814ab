#include "oracles/published.h"

#include "io/formats/profile_csv.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"

namespace perseus::testing {

const std::vector<PublishedCase>& published_cases() {
  static const std::string emulation = "emulation/stage_profile/gpt3-175b+";
  static const std::vector<PublishedCase> cases = {
      {"a100_gpt3_8x12", emulation + "a100_sxm_bf16.csv", 83.64, 8, 12},
      {"a100_gpt3_8x24", emulation + "a100_sxm_bf16.csv", 83.64, 8, 24},
      {"a40_gpt3_8x12", emulation + "a40_bf16.csv", 70.38, 8, 12},
      {"a40_gpt3_8x24", emulation + "a40_bf16.csv", 70.38, 8, 24},
      // Without the grid of BERT, which lacks stage 1's forward. No blocking power was published for these; the tests
      // hold for any value.
      {"measured_a100_bert", "measured/A100_bert-huge-uncased_pp4.profile.csv", 60, 4, 8},
      {"measured_a100_gpt3", "measured/A100_gpt3-xl_pp4.profile.csv", 60, 4, 8},
      {"measured_a100_gpt3_grid", "measured/A100_gpt3-xl_pp4.profile_grid.csv", 60, 4, 8},
      {"measured_a40_bloom", "measured/A40_bloom-3b_pp8.profile.csv", 60, 8, 16},
      {"measured_a40_bloom_grid", "measured/A40_bloom-3b_pp8.profile_grid.csv", 60, 8, 16},
      {"measured_a40_resnet", "measured/A40_wide-resnet101_8_pp8.profile.csv", 60, 8, 16},
      {"measured_a40_resnet_grid", "measured/A40_wide-resnet101_8_pp8.profile_grid.csv", 60, 8, 16},
  };
  return cases;
}

model::ComputationDag load(const std::filesystem::path& shared_data, const PublishedCase& published) {
  const Result<model::Profile> profile = formats::read_profile_csv((shared_data / published.profile).string());
  PERSEUS_CHECK(profile.ok(), profile.ok() ? "" : profile.error().message.c_str());
  const Result<model::Schedule> schedule =
      model::make_schedule("1f1b", {published.num_stages, published.num_microbatches, 1});
  PERSEUS_CHECK(schedule.ok(), "1f1b");
  Result<model::ComputationDag> dag =
      model::build_dag(*profile, *schedule, {Watts(published.blocking_power_w), Seconds(0)});
  PERSEUS_CHECK(dag.ok(), dag.ok() ? "" : dag.error().message.c_str());
  return std::move(*dag);
}

}  // namespace perseus::testing
