// `perseus partition` as a user runs it: its output, its files, its errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "io/formats/json_reader.h"
#include "io/formats/profile_csv.h"
#include "planning/partitioner/partition.h"
#include "program.h"

namespace perseus::formats {
namespace {

using ::testing::HasSubstr;

testing::Outcome run_partition(const std::string& arguments) {
  return testing::run_perseus_line("partition " + arguments);
}

class PartitionCommand : public ::testing::Test {
 protected:
  PartitionCommand() { std::filesystem::create_directories(folder); }
  ~PartitionCommand() override { std::filesystem::remove_all(folder); }

  [[nodiscard]] std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder / name) << content;
    return (folder / name).string();
  }

  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("perseus_partition_" + std::to_string(::getpid()) + "_" +
                                                     ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(PartitionCommand, CutsACsv) {
  const std::string layers = file("l.csv", "name,kind,forward_s\na,,1\nb,,1\nc,,1\nd,,1\nhead,head,1.5\n");
  const testing::Outcome text = run_partition(layers + " --stages 2");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.text(), HasSubstr("boundaries: 0 3 5\nimbalance:  1.2000"));
  EXPECT_THAT(text.text(), HasSubstr("--pipeline-model-parallel-layout \"Et*3|tL\""));

  const testing::Outcome json = run_partition(layers + " --stages 2 --json");
  EXPECT_EQ(json.exit_code, 0);
  const auto document = parse_json(json.text(), "output");
  ASSERT_TRUE(document.ok()) << document.error().message;
  JsonFields fields(document->root());
  EXPECT_EQ(fields.integers("boundaries"), (std::vector{0, 3, 5}));
  EXPECT_DOUBLE_EQ(fields.number("imbalance"), 1.2);
  EXPECT_DOUBLE_EQ(fields.number("longest_stage_s"), 3);
  EXPECT_EQ(fields.string("megatron_layout"), "Et*3|tL");
  EXPECT_FALSE(fields.error());
}

TEST_F(PartitionCommand, ZooToProfileAndBack) {
  const std::string model = "--model gpt3-1b --gpu A100-PCIe --without-embedding ";
  const std::string profile_path = (folder / "p.csv").string();
  const std::string layers_path = (folder / "l.csv").string();
  const testing::Outcome zoo =
      run_partition(model + "--stages 4 --profile-out " + profile_path + " --layers-out " + layers_path);
  EXPECT_EQ(zoo.exit_code, 0) << zoo.text();
  EXPECT_THAT(zoo.text(), HasSubstr("boundaries: 0 7 13 19 25"));
  const auto profile = read_profile_csv(profile_path);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->num_stages(), 4);
  // The model zoo's estimates, written and read again, give the same partition.
  EXPECT_THAT(run_partition(layers_path + " --stages 4").text(), HasSubstr("boundaries: 0 7 13 19 25"));
  const testing::Outcome energy =
      run_partition(layers_path + " --stages 4 --objective energy -m 8 --blocking-power 75 --json");
  EXPECT_EQ(energy.exit_code, 0) << energy.text();
  EXPECT_THAT(energy.text(), HasSubstr("\"all_tried\":false"));
}

TEST_F(PartitionCommand, WritesAPage) {
  const std::string page_path = (folder / "p.html").string();
  const testing::Outcome cut = run_partition(
      "--model gpt3-1b --gpu A100-PCIe --stages 4 --objective energy -m 4 --max-planned 20 --page-out " + page_path);
  EXPECT_EQ(cut.exit_code, 0) << cut.text();
  std::ifstream file(page_path);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  for (const char* part : {"<h1>4 stages, longest over shortest ", "stage 3, forward: ", "balanced</td>",
                           "<span>command</span>", "least energy</td>"})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST_F(PartitionCommand, Refuses) {
  const std::string bad = file("bad.csv", "name,forward_s\na,1\nb,-1\n");
  const std::string good = file("good.csv", "name,forward_s\na,1\nb,1\n");
  const auto expect = [](const std::string& arguments, int exit_code, const std::string& says) {
    const testing::Outcome outcome = run_partition(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments;
    EXPECT_THAT(outcome.text(), HasSubstr(says)) << arguments;
  };
  expect(bad + " --stages 2", 65, "bad.csv:3: forward_s: '-1'; allowed:");
  expect(good + " --stages 3", 65, "3 stages; 2 layers can be cut into 1 to 2");
  expect(good + " --stages 2 --objective energy --blocking-power 1", 65, "layer 'a': a profile needs");
  expect(good + " --stages 2 --profile-out " + (folder / "no").string(), 65, "a profile needs");
  expect(good, 64, "--stages is required");
  expect(good + " --stages 2 --model gpt3-1b", 64, "either LAYERS.csv or --model");
  expect("--stages 2", 64, "either LAYERS.csv or --model");
  expect("--model gpt3-1b --stages 2", 64, "--gpu");
  expect("--model gpt4 --gpu A40 --stages 2", 64, "unknown model 'gpt4'");
  expect("--model gpt3-1b --gpu A41 --stages 2", 64, "unknown GPU 'A41'");
  expect((folder / "none.csv").string() + " --stages 2", 66, "none.csv");
  expect("--model gpt3-1b --gpu A40 --stages 2 --objective energy --deadline 0.001", 65, "finishes in 0.001 s");
  EXPECT_FALSE(std::filesystem::exists(folder / "no"));
}

TEST_F(PartitionCommand, Lists) {
  const testing::Outcome list = run_partition("--list");
  EXPECT_EQ(list.exit_code, 0);
  for (const char* name : {"gpt3-175b", "deepseek-v3", "wide-resnet101", "A40", "B200-SXM"}) {
    EXPECT_THAT(list.text(), HasSubstr(name));
  }
  EXPECT_TRUE(parse_json(run_partition("--list --json").text(), "output").ok());
}

}  // namespace
}  // namespace perseus::formats
