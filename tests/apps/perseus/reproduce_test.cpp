// `perseus reproduce` as a user runs it: every table, complete or not at all, or one clear error.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/result.h"
#include "program.h"
#include "tests/support/shared_data.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A scratch folder with a small artifact in "data"; output goes to "out".
class Reproduce : public ::testing::Test {
 protected:
  Reproduce() {
    std::string name = (fs::temp_directory_path() / "perseus_reproduce_XXXXXX").string();
    PERSEUS_CHECK(::mkdtemp(name.data()) != nullptr, "no scratch folder");
    folder_ = name;
    write("data/emulation/stage_profile/tiny+gpu_x_bf16.csv",
          "stage,instruction,frequency,time,energy\n"
          "0,forward,1000,0.10,30\n0,forward,800,0.12,25\n0,forward,600,0.15,22\n"
          "0,backward,1000,0.20,60\n0,backward,800,0.24,50\n0,backward,600,0.30,44\n"
          "1,forward,1000,0.12,36\n1,forward,800,0.144,30\n1,forward,600,0.18,26\n"
          "1,backward,1000,0.24,72\n1,backward,800,0.288,60\n1,backward,600,0.36,53\n");
  }
  ~Reproduce() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void write(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::vector<std::string> lines(const std::string& name) const {
    std::istringstream stream(read(name));
    std::vector<std::string> all;
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    return all;
  }
  [[nodiscard]] std::set<std::string> names(const std::string& folder) const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_ / folder)) all.insert(entry.path().filename().string());
    return all;
  }

  /// Runs in the scratch folder; output and errors together.
  int run(const std::string& arguments) {
    const Outcome outcome = run_perseus_line("reproduce " + arguments, {.folder = folder_.string()});
    said_ = outcome.text();
    return outcome.exit_code;
  }

  fs::path folder_;
  std::string said_;
};

TEST_F(Reproduce, WritesEveryTableForTheAvailableData) {
  ASSERT_EQ(run("data --out out --microbatches 4,2 --no-progress"), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("no --blocking-power gpu_x=W was given"));
  EXPECT_EQ(names("out"), (std::set<std::string>{"index.html", "table5.csv", "table6.csv", "cases.csv", "figure7.csv",
                                                 "figure7.svg", "figure8.csv", "frontiers.csv", "non_straggler.csv",
                                                 "figure8_tiny+gpu_x.svg", "frontiers_tiny+gpu_x.svg"}));
  EXPECT_THAT(said_, HasSubstr("no EnvPipe result, so these fields are empty: tiny+gpu_x (2, 4)"));
  EXPECT_EQ(
      lines("out/table5.csv"),
      (std::vector<std::string>{"gpus,pipelines,microbatches_per_pipeline,global_batch_size,tensor_parallel,stages",
                                "6144,384,4,1536,8,2", "12288,768,2,1536,8,2"}));
  for (const char* method : {"all_maximum_clock", "paper_planned", "paper_realized", "ours_realized", "bound",
                             "envpipe_recomputed", "zeus_global", "zeus_per_stage", "min_energy"}) {
    EXPECT_THAT(read("out/frontiers.csv"), HasSubstr(fmt::format("tiny,gpu_x,4,{},", method)));
  }
  EXPECT_THAT(read("out/figure7.csv"), HasSubstr(",zeus_global,"));
  const auto table6 = lines("out/table6.csv");
  ASSERT_EQ(table6.size(), 3u);
  EXPECT_EQ(table6[0],
            "model,gpu,microbatches,paper_planned_pct,paper_realized_pct,ours_realized_pct,bound_pct,ours_t_min_pct");
  EXPECT_TRUE(table6[1].starts_with("tiny,gpu_x,2,"));
  EXPECT_TRUE(table6[2].starts_with("tiny,gpu_x,4,"));
  const auto figure8 = lines("out/figure8.csv");
  ASSERT_EQ(figure8.size(), 1u + 2 * 50);
  EXPECT_THAT(figure8[1], HasSubstr("tiny,gpu_x,2,768,12288,1.01,"));
  EXPECT_THAT(figure8[0],
              HasSubstr(",bound_pct,envpipe_pct,envpipe_recomputed_pct,zeus_global_pct,zeus_per_stage_pct,"));
  EXPECT_THAT(figure8[1], HasSubstr(",,")) << "no EnvPipe was published: an empty field";
  EXPECT_THAT(figure8.back(), HasSubstr(",1.50,"));

  const std::string page = read("out/index.html");
  EXPECT_THAT(page,
              ::testing::ContainsRegex("<h1>the fastest plans save -?[0-9]+[.][0-9] %, those of the published method "
                                       "-?[0-9]+[.][0-9] %</h1>"));
  EXPECT_THAT(page, HasSubstr("<td>tiny on gpu_x</td><td>4</td>"));
  for (const char* heading : {"Table 6", "Figure 7", "Figure 8", "Time-energy frontiers"})
    EXPECT_THAT(page, HasSubstr(std::string("<h2>") + heading));
  for (const char* fact : {"<b>Perseus</b>", "<b>written</b>", "<b>command</b>", "<b>data</b>"})
    EXPECT_THAT(page, HasSubstr(fact));

  // A second run replaces the files with the same bytes.
  const std::string before = read("out/frontiers.csv");
  ASSERT_EQ(run("data --out out --microbatches 2,4 --no-progress"), 0) << said_;
  EXPECT_EQ(read("out/frontiers.csv"), before);
  // The program uses the given power and guesses none.
  ASSERT_EQ(run("data --out out --microbatches 2 --blocking-power gpu_x=10 --tau gpu_x=0.002 --json"), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("{\"table6\":[{\"model\":\"tiny\""));
  EXPECT_THAT(said_, HasSubstr("\"left_out\":[]"));
  EXPECT_EQ(said_.find("blocking power"), std::string::npos) << said_;
  EXPECT_THAT(lines("out/cases.csv")[1], HasSubstr("tiny,gpu_x,2,12288,10,0.002,"));
  EXPECT_EQ(names(""), (std::set<std::string>{"data", "out"}));
}

TEST_F(Reproduce, RefusesWithOneErrorAndWritesNothing) {
  const struct {
    std::string arguments;
    int exit_code;
    std::string says;
  } bad[] = {
      {"nowhere --out out", 66, "nowhere/emulation/stage_profile: no such directory"},
      {"data", 64, "--out"},
      {"data --out out --microbatches 13", 64, "13 does not divide the global batch of 1536"},
      {"data --out out --microbatches 0", 64, "--microbatches: 0"},
      {"data --out out --tau gpu_x=0", 64, "--tau: 'gpu_x=0' is not GPU=NUMBER"},
      {"data --out out --tau 0.1", 64, "--tau: '0.1' is not GPU=NUMBER"},
      {"data --out out --blocking-power h100=80", 64, "no profile is of 'h100'; there are gpu_x"},
      {"data --out out --blocking-power gpu_x=8 --blocking-power gpu_x=9", 64, "given twice"},
      {"data --out out --effort most", 64, "most"},
      {"data --out data", 73, "it holds 'emulation/stage_profile/tiny+gpu_x_bf16.csv'"},
  };
  for (const auto& [arguments, exit_code, says] : bad) {
    EXPECT_EQ(run(arguments), exit_code) << arguments << ": " << said_;
    EXPECT_THAT(said_, HasSubstr(says)) << arguments;
    EXPECT_EQ(names(""), std::set<std::string>{"data"}) << arguments;
  }
}

TEST_F(Reproduce, SkipsAndReportsBrokenFiles) {
  const std::string stages = "data/emulation/stage_profile/";
  const std::string frontiers = "data/emulation/iteration_time_energy/gpu_x/";
  write(stages + "bad+gpu_x_bf16.csv", "stage,instruction,frequency,time,energy\n0,forward,1,x,1\n");
  write(stages + "readme.txt", "hello");
  write(stages + "cut+gpu_x_bf16.csv.gz", "\x1f\x8b\x08");
  write("data/emulation/envpipe_result.csv",
        "model,precision,device,num_microbatches,num_pipelines,iteration_time,energy\n"
        "tiny,bf16,gpu_x,8,192,no,1\ntiny,bf16,gpu_x,4,384,20,90000\n");
  write(frontiers + "tiny_bf16_mb8.csv.gz", "\x1f\x8b\x08");
  write(frontiers + "tiny_bf16_mb5.csv", "time,energy\n1,1\n");
  ASSERT_EQ(run("data --out out --effort low --json"), 0) << said_;
  for (const char* says : {"bad+gpu_x_bf16.csv:2: time: 'x'", "readme.txt: not named",
                           "cut+gpu_x_bf16.csv.gz: broken gzip", "envpipe_result.csv:2: iteration_time: 'no'",
                           "tiny_bf16_mb8.csv.gz: broken gzip", "tiny+gpu_x, 5 microbatches: they do not divide"}) {
    EXPECT_THAT(said_, HasSubstr(says));
  }
  // The paper's scales, and 4 and 8, which have published values.
  const auto table6 = lines("out/table6.csv");
  ASSERT_EQ(table6.size(), 7u);
  EXPECT_TRUE(table6[1].starts_with("tiny,gpu_x,4,"));
  EXPECT_TRUE(table6[2].starts_with("tiny,gpu_x,8,"));
  EXPECT_TRUE(table6[6].starts_with("tiny,gpu_x,96,"));
}

TEST_F(Reproduce, FailsIfAllFilesAreBroken) {
  fs::remove_all(folder_ / "data/emulation/stage_profile");
  write("data/emulation/stage_profile/bad+gpu_x_bf16.csv",
        "stage,instruction,frequency,time,energy\n0,forward,1,x,1\n");
  EXPECT_EQ(run("data --out out"), 65);
  EXPECT_THAT(said_, HasSubstr("bad+gpu_x_bf16.csv:2:"));
  EXPECT_EQ(names(""), std::set<std::string>{"data"});
}

TEST_F(Reproduce, WritesThePapersTable6) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const std::map<std::string, double> printed{{"gpt3-175b,a100_sxm,12,", 15.20},
                                              {"gpt3-175b,a40,12,", 11.81},
                                              {"bloom-176b,a100_sxm,12,", 10.47},
                                              {"bloom-176b,a40,12,", 6.97}};
  ASSERT_EQ(run("'" + fs::absolute(data).string() + "' --out out --microbatches 12 --effort low"), 0) << said_;
  int found = 0;
  for (const std::string& line : lines("out/table6.csv")) {
    for (const auto& [row, saving_pct] : printed) {
      if (!line.starts_with(row)) continue;
      ++found;
      EXPECT_NEAR(std::strtod(line.c_str() + row.size(), nullptr), saving_pct, 0.05) << line;
    }
  }
  EXPECT_GE(found, 2);
}

}  // namespace
}  // namespace perseus::testing
