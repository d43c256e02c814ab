// `perseus emulate` as a user runs it: its output, the same bytes for the same seed, one clear error for bad input;
// and its strong scaling equals that of `perseus reproduce` for the paper's figure 8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "program.h"
#include "tests/support/shared_data.h"

namespace perseus::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

const std::string kSampleScenario = PERSEUS_SOURCE_DIR "/data/sample_scenario.toml";

std::string small_scenario(const std::string& more = "duration_s = 600\n") {
  return more + "[cluster]\nblocking_power_w = 90\nidle_power_w = 50\n[[pipelines]]\nname = \"whole\"\nprofile = \"" +
         sample_profile() + "\"\nmicrobatches = 6\ncount = 4\n";
}

/// Rows of a CSV by column name.
std::vector<std::map<std::string, std::string>> rows_of(const std::string& csv) {
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> columns;
  for (const std::string& line : lines_of(csv)) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    if (columns.empty()) {
      columns = cells;
      continue;
    }
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) row[columns[i]] = cells[i];
  }
  return rows;
}

double number(const std::map<std::string, std::string>& row, const std::string& column) {
  return std::strtod(row.at(column).c_str(), nullptr);
}

TEST(EmulateCommand, TakesTransferLatenciesOfTheScenario) {
  const ScratchFolder scratch;
  const auto scenario_of = [&](const std::string& name, const std::string& latencies) {
    return scratch.file(name,
                        small_scenario("iterations = 10\n") + "[timing]\ntransfer_latency_s = " + latencies + "\n");
  };
  const auto iteration_s = [&](const std::string& file, const std::string& folder) {
    const Outcome outcome = run_perseus({"emulate", file, "--methods", "all-max", "--out", scratch.path(folder)});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("transfer latency: "));
    return number(rows_of(content_of(scratch.path(folder + "/methods.csv")))[0], "mean_iteration_s");
  };
  const double forward_s = iteration_s(scenario_of("t.toml", "[0.001, [0.502, 0.003], 0.001]"), "t");
  // At least the first microbatch waits for the slow link.
  EXPECT_GT(forward_s, iteration_s(scenario_of("s.toml", "[0.001, [0.002, 0.003], 0.001]"), "a") + 0.5);
  const auto slow_with = [&](const std::string& how) {
    return scenario_of(how + ".toml", "[0.001, [0.502, 0.003], 0.001]\n" + how + " = true");
  };
  EXPECT_GT(iteration_s(slow_with("blocking_transfers"), "c"), forward_s);
  // Transfers over the slow link queue, but the sender of all computes meanwhile.
  EXPECT_GT(iteration_s(slow_with("serial_transfers"), "d"), forward_s);
  const std::string too_many = scenario_of("u.toml", "[0.1, 0.1, 0.1, 50]");
  const Outcome outcome = run_perseus({"emulate", too_many});
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(too_many + ":"), HasSubstr(": transfer_latency_s: 4 entries; allowed: ")));
}

TEST(EmulateCommand, WritesAPageTablesAndPictures) {
  const ScratchFolder scratch;
  const Outcome outcome = run_perseus({"emulate", kSampleScenario, "--methods", "exact", "--out", scratch.path("out")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("cluster: 256 GPUs, 8 pipelines, tensor parallel 8"));
  const ScratchFolder none;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path("out"))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names,
              ElementsAre("band.svg", "emulation.html", "energy.svg", "iteration.svg", "methods.csv", "power.svg",
                          "scaling.csv", "scaling_strong.svg", "scaling_weak.svg", "segments.csv", "times.svg"));
  EXPECT_THAT(content_of(scratch.path("out/emulation.html")), HasSubstr(content_of(scratch.path("out/energy.svg"))));

  // All sums of the table hold: parts to the whole, segments to parts, sources of savings to the savings.
  const auto methods = rows_of(content_of(scratch.path("out/methods.csv")));
  ASSERT_THAT(methods, SizeIs(2));
  EXPECT_EQ(methods[0].at("method"), "all-max");
  for (const auto& row : methods) {
    double parts = 0, segments = 0;
    for (const char* part : {"useful_j", "intrinsic_bloat_j", "extrinsic_bloat_j", "blocking_j", "idle_j"}) {
      parts += number(row, part);
      for (const auto& segment : rows_of(content_of(scratch.path("out/segments.csv")))) {
        if (segment.at("method") == row.at("method")) segments += number(segment, part);
      }
    }
    EXPECT_NEAR(parts, number(row, "energy_j"), 1e-6 * parts);
    EXPECT_NEAR(segments, parts, 1e-6 * parts);
    EXPECT_NEAR(number(row, "intrinsic_saving_pct") + number(row, "extrinsic_saving_pct"), number(row, "saving_pct"),
                1e-9);
  }
  EXPECT_GT(number(methods[1], "saving_pct"), 10);
  EXPECT_GT(number(methods[1], "extrinsic_saving_pct"), 0);
}

TEST(EmulateCommand, SaysThatANoisyProfileCountsAsTrue) {
  const ScratchFolder scratch;
  std::string scenario = small_scenario("iterations = 10\n");
  const auto emulated = [&](const std::string& text) {
    return run_perseus({"emulate", scratch.file("s.toml", text), "--methods", "all-max"});
  };
  EXPECT_THAT(emulated(scenario).out, ::testing::Not(HasSubstr("counts as true")));
  const std::size_t at = scenario.find(sample_profile());
  const Outcome noisy = emulated(scenario.replace(at, sample_profile().size(), noisy_sample(scratch)));
  EXPECT_EQ(noisy.exit_code, 0) << noisy.err;
  EXPECT_THAT(noisy.out, HasSubstr("noise of 'whole': 2.2 % of time"));
}

TEST(EmulateCommand, DoubtsAProfileInOtherUnits) {
  const ScratchFolder scratch;
  std::string scenario = small_scenario("iterations = 1\n");
  const std::string in_ms = scratch.file("ms.csv",
                                         "stage,instruction,frequency,time,energy\n0,forward,1410,16,4.8\n"
                                         "0,forward,900,22,4.1\n0,backward,1410,32,9.6\n0,backward,900,44,8.2\n");
  scenario.replace(scenario.find(sample_profile()), sample_profile().size(), in_ms);
  const Outcome outcome = run_perseus({"emulate", scratch.file("s.toml", scenario), "--methods", "all-max"});
  EXPECT_THAT(outcome.err, HasSubstr("ms.csv: stage 0, forward, 1410 MHz: 0.3 W (and 3 more): no GPU takes so little"));
}

TEST(EmulateCommand, SameSeedSameBytes) {
  const ScratchFolder scratch;
  const std::vector<std::string> command{"emulate", kSampleScenario, "--json", "--seed"};
  const auto with_seed = [&](const std::string& seed) {
    std::vector<std::string> arguments = command;
    arguments.push_back(seed);
    return run_perseus(arguments).out;
  };
  const std::string first = with_seed("11");
  EXPECT_THAT(first, StartsWith("{\"name\":\"256 GPUs for an hour\""));
  EXPECT_EQ(with_seed("11"), first);
  EXPECT_NE(with_seed("12"), first);
}

TEST(EmulateCommand, FilesDifferInTheTimeOfThePageOnly) {
  const ScratchFolder scratch;
  const std::string scenario = scratch.file("s.toml", small_scenario("iterations = 10\n"));
  const auto lines_of_run = [&](const std::string& folder, const std::string& written) {
    std::filesystem::create_directory(scratch.path(folder));
    const Outcome outcome =
        run_perseus({"emulate", scenario, "--methods", "all-max", "--out", "out"},
                    {.folder = scratch.path(folder), .prepare = {}, .meanwhile = {}, .program = {}});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::vector<std::string> lines;
    for (const auto& file : std::filesystem::directory_iterator(scratch.path(folder + "/out"))) {
      for (const std::string& line : lines_of(content_of(file.path()))) {
        if (line.find(written) == std::string::npos) lines.push_back(file.path().filename().string() + ": " + line);
      }
    }
    std::ranges::sort(lines);
    return lines;
  };
  const std::vector<std::string> first = lines_of_run("a", "<span>written</span>");
  EXPECT_GT(first.size(), 100u);
  EXPECT_EQ(lines_of_run("b", "<span>written</span>"), first);
  EXPECT_EQ(lines_of_run("c", "nothing").size(), first.size() + 1);
}

TEST(EmulateCommand, OnlyASweepNeedsNoTime) {
  const ScratchFolder scratch;
  const std::string scenario = scratch.file(
      "s.toml", small_scenario("") + "[sweep]\nscaling = [\"weak\"]\ngpus = [4, 32]\nslowdowns = [1, 1.2]\n");
  const Outcome outcome = run_perseus({"emulate", scenario, "--out", scratch.path("out")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto rows = rows_of(content_of(scratch.path("out/scaling.csv")));
  ASSERT_THAT(rows, SizeIs(8));
  EXPECT_EQ(rows[2].at("pipelines"), "1");
  EXPECT_EQ(rows[2].at("non_straggler_saving_pct"), "") << "the only pipeline straggles";
  EXPECT_EQ(rows[7].at("gpus"), "32");
  EXPECT_GT(number(rows[7], "saving_pct"), number(rows[5], "saving_pct"));
}

struct Bad {
  std::string content;
  std::vector<std::string> options;
  int exit_code;
  std::string says;
};

TEST(EmulateCommand, RefusesWithOneErrorAndWritesNothing) {
  const std::string straggler =
      "[[straggler]]\ncause = \"thermal\"\npipeline = 0\nslowdown = 1.2\nat_s = 0\nfor_s = 9\n";
  const std::string sweep = "[sweep]\nscaling = [\"strong\"]\nslowdowns = [1]\n";
  const Bad cases[] = {
      {small_scenario() + "[timing]\nload_s = -1\n",
       {},
       65,
       "s.toml:11: [timing] load_s: -1; allowed: a number from 0"},
      {"duration_s = 1 2\n", {}, 65, "s.toml:1: "},
      {small_scenario() + straggler + "stage = 4\n",
       {},
       65,
       "s.toml:10: [[straggler]]: stage: 4; allowed: 0..3, the stages of kind 'whole'"},
      {small_scenario() + straggler + "gpus = 2\n", {}, 65, "gpus: 2; allowed: 1..1"},
      {small_scenario("duration_s = 9\nmethods = [\"best\"]\n"), {}, 65, "methods: 'best'; allowed: exact, perseus"},
      {small_scenario(), {"--methods", "best"}, 64, "methods: 'best'; allowed: exact, perseus"},
      {small_scenario(), {"--seed", "-1"}, 64, "'-1' is not a whole number from 0"},
      {small_scenario() + "[[pipelines]]\nname = \"b\"\nprofile = \"nowhere.csv\"\nmicrobatches = 1\ncount = 0\n",
       {},
       66,
       "nowhere.csv"},
      {small_scenario() + "[[pipelines]]\nname = \"b\"\nprofile = \"" + sample_profile() +
           "\"\nschedule = \"zbv\"\nmicrobatches = 9\ncount = 0\n",
       {},
       65,
       "s.toml:10: [[pipelines]]"},
      {small_scenario() + sweep + "gpus = [6]\n", {}, 65, "gpus: 6; allowed: multiples of 4, the GPUs of a pipeline"},
      {small_scenario() + sweep + "gpus = [20]\n",
       {},
       65,
       "gpus: 20, which are 5 pipelines; allowed: numbers of pipelines that divide the global batch of 24 "
       "microbatches"},
  };
  for (const Bad& bad : cases) {
    const ScratchFolder scratch;
    std::vector<std::string> arguments{"emulate", scratch.file("s.toml", bad.content), "--out", scratch.path("out")};
    arguments.insert(arguments.end(), bad.options.begin(), bad.options.end());
    const Outcome outcome = run_perseus(arguments);
    EXPECT_EQ(outcome.exit_code, bad.exit_code) << bad.says << "\n" << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(lines_of(outcome.err), SizeIs(1)) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(bad.says));
    EXPECT_THAT(scratch.names(), ElementsAre("s.toml"));
  }
}

TEST(EmulateCommand, LeavesForeignFilesAlone) {
  const ScratchFolder scratch;
  const std::string mine = scratch.file("mine.txt", "mine");
  const Outcome outcome = run_perseus({"emulate", kSampleScenario, "--out", scratch.path()});
  EXPECT_EQ(outcome.exit_code, 73);
  EXPECT_THAT(outcome.err, HasSubstr("mine.txt"));
  EXPECT_EQ(content_of(mine), "mine");
}

TEST(EmulateCommand, StrongScalingAgreesWithTheReproducedSavingsOfWaitingPipelines) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const ScratchFolder scratch;
  const std::string folder = std::filesystem::absolute(data).string();
  const Outcome reproduced = run_perseus({"reproduce", folder, "--out", scratch.path("paper"), "-m", "12,24"});
  ASSERT_EQ(reproduced.exit_code, 0) << reproduced.err;
  const auto figure8 = rows_of(content_of(scratch.path("paper/non_straggler.csv")));
  int compared = 0;
  for (const auto& [gpu, watts] : {std::pair("a100_sxm", "83.64"), std::pair("a40", "70.38")}) {
    // The paper's table 5: a global batch of 1536, 8 stages, tensor parallel 8.
    const std::string scenario = scratch.file(
        std::string(gpu) + ".toml",
        std::string("methods = [\"exact\"]\n[cluster]\ntensor_parallel = 8\nblocking_power_w = ") + watts +
            "\n[[pipelines]]\nname = \"gpt3\"\nprofile = \"" + folder + "/emulation/stage_profile/gpt3-175b+" + gpu +
            "_bf16.csv\"\nmicrobatches = 12\ncount = 128\n[sweep]\nscaling = [\"strong\"]\ngpus = [4096, 8192]\n"
            "slowdown_from = 1.01\nslowdown_to = 1.5\nslowdown_step = 0.01\n");
    const Outcome emulated = run_perseus({"emulate", scenario, "--out", scratch.path(gpu)});
    ASSERT_EQ(emulated.exit_code, 0) << emulated.err;
    for (const auto& row : rows_of(content_of(scratch.path(std::string(gpu) + "/scaling.csv")))) {
      if (row.at("method") != "exact") continue;
      for (const auto& paper : figure8) {
        if (paper.at("model") != "gpt3-175b" || paper.at("gpu") != gpu || paper.at("gpus") != row.at("gpus") ||
            std::abs(number(paper, "slowdown") - number(row, "slowdown")) > 1e-6) {
          continue;
        }
        EXPECT_NEAR(number(row, "non_straggler_saving_pct"), number(paper, "ours_realized_pct"), 1e-4)
            << gpu << " " << row.at("gpus") << " " << row.at("slowdown");
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 2 * 2 * 50);
}

}  // namespace
}  // namespace perseus::testing
