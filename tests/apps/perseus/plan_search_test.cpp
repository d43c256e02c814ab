// `perseus plan` with several configurations as a user runs it: its output, its files, their verification, its errors.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "program.h"
#include "tests/support/shared_data.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> search_words(const std::vector<std::string>& more) {
  std::vector<std::string> words{"plan", sample_profile(), "-m", "6", "--blocking-power", "90", "--deadlines", "50"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json::object search_json_of(const std::vector<std::string>& more) {
  std::vector<std::string> words = search_words(more);
  words.emplace_back("--json");
  const Outcome outcome = run_perseus(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.exit_code == 0 ? json::parse(outcome.out).as_object() : json::object{};
}

void replace_in(const fs::path& path, const std::string& from, const std::string& to) {
  std::string text = content_of(path);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << path << " has no " << from;
  std::ofstream(path) << text.replace(at, from.size(), to);
}

TEST(PlanSearch, WritesEveryConfigurationAndTheUnionAndVerifies) {
  const ScratchFolder scratch;
  const std::string out = scratch.path("plans");
  const Outcome outcome = run_perseus(search_words({"--schedule", "1f1b,zero-bubble,dualpipev", "--out", out}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("reference: 1f1b, everything at maximum clock"), HasSubstr("without a memory limit"),
                    HasSubstr("50 % of its time and energy"), HasSubstr("left out: dualpipev: 6 microbatches")));
  for (const char* name : {"configurations.csv", "frontier.csv", "configurations.html", "configurations.svg",
                           "1f1b/plans.json", "zero-bubble/report.html", "zero-bubble/plans/freqs_pipeline_00000.py"}) {
    EXPECT_TRUE(fs::is_regular_file(fs::path(out) / name)) << name;
  }
  const Outcome verified = run_perseus({"verify", out, "--profile", sample_profile()});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("not checked: configurations.html\nnot checked: configurations.svg\n"));
  EXPECT_THAT(verified.out, AllOf(HasSubstr("zero-bubble: "), HasSubstr("verified: all claims hold"),
                                  HasSubstr("1 configurations have derived times")));
  const Outcome some = run_perseus({"verify", out, "--certificates", "7"});
  EXPECT_THAT(some.out, ContainsRegex("1f1b: .*, 7 of [1-9][0-9]+ pieces of the bound proven\n"));
  fs::remove(fs::path(out) / "configurations.svg");
  std::ofstream(out + "/zero-bubble/notes") << "x";
  std::ofstream(out + "/notes") << "x";
  fs::create_directories(out + "/gpipe+mine");
  const Outcome foreign = run_perseus({"verify", out});
  EXPECT_THAT(foreign.out, AllOf(HasSubstr("not checked: configurations.svg, which is missing\n"),
                                 HasSubstr("not checked: " + out + "/gpipe+mine, which is no file of 'perseus plan'\n"),
                                 HasSubstr("not checked: " + out + "/notes, which is no file of 'perseus plan'\n"),
                                 HasSubstr("not checked: zero-bubble: " + out + "/zero-bubble/notes, which is no")));
  for (const char* name : {"/zero-bubble/notes", "/notes", "/gpipe+mine"}) fs::remove(out + name);
  // The folder of one configuration is a plan like any other; a later plan may replace the whole output.
  EXPECT_EQ(run_perseus({"lookup", out + "/zero-bubble"}).exit_code, 0);
  EXPECT_EQ(run_perseus(search_words({"--out", out})).exit_code, 0);
  EXPECT_FALSE(fs::exists(fs::path(out) / "configurations.csv"));
}

TEST(PlanSearch, ConfigurationsWithClockLimitsVerify) {
  const ScratchFolder scratch;
  const std::string out = scratch.path("plans");
  ASSERT_EQ(run_perseus({"plan", sample_profile(), "-m", "4", "--blocking-power", "90", "--deadlines", "10",
                         "--schedule", "1f1b,gpipe", "--switch-latency", "0.01", "--out", out})
                .exit_code,
            0);
  const Outcome verified = run_perseus({"verify", out});
  EXPECT_EQ(verified.exit_code, 0) << verified.text();
  EXPECT_THAT(verified.out, HasSubstr("not recomputed: clock_limit_cost_j"));
}

TEST(PlanSearch, VerifySeesLiesAboutTheUnion) {
  const ScratchFolder scratch;
  const std::string out = scratch.path("plans");
  ASSERT_EQ(run_perseus(search_words({"--schedule", "1f1b,zero-bubble", "--out", out})).exit_code, 0);
  const std::string honest = content_of(fs::path(out) / "frontier.csv");
  const auto findings = [&](const std::string& file, const std::string& from, const std::string& to) {
    const std::string before = content_of(fs::path(out) / file);
    replace_in(fs::path(out) / file, from, to);
    const Outcome verified = run_perseus({"verify", out});
    std::ofstream(fs::path(out) / file) << before;
    EXPECT_EQ(verified.exit_code, 1) << file;
    return verified.out;
  };
  const std::string last = lines_of(honest).back();
  EXPECT_THAT(findings("frontier.csv", last + "\n", ""), HasSubstr("fewer lines"));
  EXPECT_THAT(findings("frontier.csv", "\n0,", "\n7,"), HasSubstr("computed from plans.json: '0'"));
  EXPECT_THAT(findings("configurations.csv", "\n1f1b,", "\n1f1b,1"), HasSubstr("configurations.csv:2"));
  EXPECT_EQ(run_perseus({"verify", out}).exit_code, 0);
  const std::string csv = content_of(fs::path(out) / "configurations.csv");
  const std::size_t row = csv.find("\nzero-bubble,") + 1;
  EXPECT_THAT(
      findings("configurations.csv", lines_of(csv.substr(row)).front() + "\n", ""),
      AllOf(HasSubstr("zero-bubble: not in configurations.csv"), HasSubstr("1f1b: plans.json notes '2 planned,")));
  for (const char* name : {"frontier.csv", "zero-bubble/frontier.csv", "1f1b/report.html", "1f1b/trace.json"}) {
    fs::rename(fs::path(out) / name, scratch.path("aside"));
    const Outcome missing = run_perseus({"verify", out});
    EXPECT_EQ(missing.exit_code, 1) << name;
    EXPECT_THAT(missing.out, HasSubstr(name));
    fs::rename(scratch.path("aside"), fs::path(out) / name);
  }
  fs::remove(fs::path(out) / "zero-bubble/plans.json");
  EXPECT_THAT(run_perseus({"verify", out}).err, HasSubstr("zero-bubble/plans.json"));
}

TEST(PlanSearch, SavingsAreAgainstTheReference) {
  const json::object first = search_json_of({"--schedule", "gpipe,zero-bubble"});
  EXPECT_EQ(first.at("reference").at("configuration").as_string(), "gpipe");
  const json::object chosen = search_json_of({"--schedule", "gpipe,zero-bubble,1f1b", "--reference-schedule", "1f1b"});
  EXPECT_EQ(chosen.at("reference").at("configuration").as_string(), "1f1b");
  const json::object alone = search_json_of({"--schedule", "1f1b"});
  EXPECT_NEAR(chosen.at("reference").at("time_s").to_number<double>(), alone.at("t_max_s").to_number<double>(), 1e-12);
  EXPECT_NEAR(chosen.at("reference").at("energy_j").to_number<double>(),
              alone.at("all_maximum_clock").at("energy_j").to_number<double>(), 1e-9);
  // No slower than the reference, and at least as good as clocks alone.
  const json::value& plan = chosen.at("default_plan");
  EXPECT_LE(plan.at("time_s").to_number<double>(), alone.at("t_max_s").to_number<double>() * (1 + 1e-9));
  EXPECT_GE(plan.at("saving_pct").to_number<double>(), alone.at("saving_pct").to_number<double>() - 1e-9);
  EXPECT_EQ(plan.at("configuration").as_string(), "zero-bubble");
}

TEST(PlanSearch, AMemoryLimitExcludesLargerConfigurations) {
  const ScratchFolder scratch;
  const std::string memory = scratch.path("memory.csv");
  std::ofstream file(memory);
  file << "stage,weights_gib,activations_gib,checkpoint_gib\n";
  for (int stage = 0; stage < 4; ++stage) file << stage << ",20,2,0.1\n";
  file.close();
  const json::object limited =
      search_json_of({"--schedule", "1f1b,gpipe,zero-bubble", "--memory", memory, "--memory-limit", "28"});
  ASSERT_EQ(limited.at("left_out").as_array().size(), 1u);
  EXPECT_THAT(std::string(limited.at("left_out").at(0).at("reason").as_string()),
              HasSubstr("gpipe: rank 0 needs 32 GiB; the limit is 28 GiB"));
  EXPECT_EQ(limited.at("configurations").at(0).at("memory_gib").to_number<double>(), 28);
  const Outcome none = run_perseus(search_words({"--schedule", "best", "--memory", memory, "--memory-limit", "27"}));
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err,
              HasSubstr("the reference configuration is not possible: 1f1b: rank 0 needs 28 GiB; the limit is 27 GiB"));
}

TEST(PlanSearch, MemoryComesFromAModelToo) {
  // GPT-3 1.3B, six of 24 layers on each of four ranks: 16 bytes for each of 12 h^2 parameters a layer, h = 2048, and
  // at one sequence of 2048 tokens (s b h = 4 MiB) 34 + 5 * 16 = 114 times s b h a layer. The second rank of 1F1B holds
  // three microbatches, the first one four with the mask of its embedding (s b h) and 16 bytes for each of its weights.
  const double sbh = 4.0 / 1024, layers = 6 * 16 * 12 * 2048.0 * 2048 / 0x1p30;
  const double embedding = 16 * (50257.0 + 2048) * 2048 / 0x1p30;
  const json::object found = search_json_of({"--memory-model", "gpt3-1b", "--microbatch-size", "1", "--sequence-length",
                                             "2048", "--precision", "bf16", "--memory-limit", "80"});
  EXPECT_NEAR(found.at("configurations").at(0).at("memory_gib").to_number<double>(),
              layers + embedding + 4 * (6 * 114 + 1) * sbh, 1e-9);
  const Outcome uneven = run_perseus(search_words({"--memory-model", "gpt3-1b", "--memory-layers", "6,6,6,5"}));
  EXPECT_EQ(uneven.exit_code, 64);
  EXPECT_THAT(uneven.err, HasSubstr("23 layers on 4 stages"));
  const Outcome unknown = run_perseus(search_words({"--memory-model", "gpt4"}));
  EXPECT_EQ(unknown.exit_code, 64);
  EXPECT_THAT(unknown.err, HasSubstr("unknown model 'gpt4'"));
}

TEST(PlanSearch, SaysForWhichTrainingTheMemoryOfAModelIsComputed) {
  const auto run = [](const std::string& gib, const std::vector<std::string>& more) {
    std::vector<std::string> words = search_words({"--memory-model", "gpt3-1b", "--memory-limit", gib});
    words.insert(words.end(), more.begin(), more.end());
    return run_perseus(words);
  };
  const std::string setup = "microbatch size 4, sequence length 2048, tf32, tensor parallelism 1";
  const std::string options =
      "to change it: --microbatch-size, --sequence-length, --precision, --tensor-parallel, --memory-layers";
  EXPECT_THAT(run("9", {}).err, AllOf(HasSubstr("the limit is 9 GiB; the memory is computed for " + setup +
                                                ", no recomputation; " + options),
                                      HasSubstr(", --measured-with recomputation\n")));
  EXPECT_THAT(run("9", {"--measured-with", "recomputation"}).err, HasSubstr(", recomputation; " + options + "\n"));
  EXPECT_THAT(run("900", {"--precision", "bf16", "--measured-with", "no-recomputation"}).out,
              HasSubstr("memory as computed for gpt3-1b, microbatch size 4, sequence length 2048, bf16, tensor "
                        "parallelism 1; the profile does not recompute; weights"));
  // Another reason than the limit.
  EXPECT_THAT(run("900", {"--ranks", "3"}).err, Not(HasSubstr("the memory is computed for")));
}

// The first row of "Within memory" in docs/measurements/choices.md.
TEST(PlanSearch, TheDocumentedOptionsGiveTheMemoryOfThePublishedTable) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const std::string profile = (data / "emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv").string();
  const Outcome outcome = run_perseus_line(fmt::format(
      "plan {} -m 12 --blocking-power 83.64 --recompute best --measured-with recomputation --memory-model gpt3-175b "
      "--microbatch-size 1 --precision bf16 --tensor-parallel 8 --memory-limit 80 --json",
      profile));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::value found = json::parse(outcome.out);
  EXPECT_NEAR(found.at("configurations").at(0).at("memory_gib").to_number<double>(), 46.9, 0.05);
  EXPECT_NEAR(found.at("changes").at(0).at("saving_pct").to_number<double>(), 15.94, 0.005);
  EXPECT_NEAR(found.at("changes").at(1).at("saving_pct").to_number<double>(), 43.59, 0.005);
}

TEST(PlanSearch, RecomputesOnlyWhereItMust) {
  const json::object best = search_json_of({"--recompute", "best", "--measured-with", "recomputation"});
  ASSERT_EQ(best.at("configurations").as_array().size(), 2u);
  EXPECT_EQ(best.at("reference").at("configuration").as_string(), "1f1b");
  EXPECT_THAT(std::string(best.at("configurations").at(1).at("description").as_string()),
              HasSubstr("stages 0 1 2 recompute"));
  const auto saving = [&](int c) {
    return best.at("configurations").at(c).at("in_time").at("saving_pct").to_number<double>();
  };
  EXPECT_GT(saving(1), saving(0) + 1);
}

// `--schedule zbv` alone takes the profile's stages as chunks, a list takes them as ranks: with --ranks both are the
// same.
TEST(PlanSearch, TheSameRanksAreTheSamePlans) {
  const ScratchFolder scratch;
  const auto planned = [&](const std::string& name, std::vector<std::string> more, const std::string& folder) {
    more.insert(more.end(), {"--split-backward", "0.5", "--out", scratch.path(name)});
    EXPECT_EQ(run_perseus(search_words(more)).exit_code, 0);
    const Outcome verified = run_perseus({"verify", scratch.path(name)});
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
    const json::value file = json::parse(content_of(fs::path(scratch.path(name)) / folder / "plans.json"));
    std::vector<double> figures{static_cast<double>(file.at("dag").at("accelerators").as_array().size())};
    for (const json::value& point : file.at("points").as_array()) {
      figures.push_back(point.at("time_s").to_number<double>());
      figures.push_back(point.at("effective_energy_j").to_number<double>());
    }
    return figures;
  };
  const auto alone = planned("alone", {"--schedule", "zbv"}, "");
  EXPECT_EQ(alone.front(), 2);
  EXPECT_EQ(planned("two", {"--schedule", "zbv", "--ranks", "2"}, "zbv"), alone);
  const auto listed = planned("listed", {"--schedule", "1f1b,zbv"}, "zbv");
  EXPECT_EQ(listed.front(), 4);
  EXPECT_EQ(planned("four", {"--schedule", "1f1b,zbv", "--ranks", "4"}, "zbv"), listed);
}

TEST(PlanSearch, ExcludesOnceAConfigurationThatRecomputationCannotFit) {
  const Outcome both = run_perseus(
      search_words({"--schedule", "1f1b,dualpipev", "--recompute", "best", "--measured-with", "recomputation"}));
  ASSERT_EQ(both.exit_code, 0) << both.err;
  const std::size_t first = both.out.find("left out: dualpipev");
  ASSERT_NE(first, std::string::npos) << both.out;
  EXPECT_EQ(both.out.find("left out: dualpipev", first + 1), std::string::npos) << both.out;
}

TEST(PlanSearch, OtherPartitionsAreTriedAndVerify) {
  const ScratchFolder scratch;
  const std::string out = scratch.path("plans");
  const json::object found =
      search_json_of({"--schedule", "1f1b,zbv", "--stage-layers", "3", "--slowdown", "0.3%", "--out", out});
  ASSERT_EQ(found.at("configurations").as_array().size(), 3u);
  const json::value& moved = found.at("configurations").at(2);
  EXPECT_EQ(moved.at("name").as_string(), "1f1b+partition-best");
  EXPECT_THAT(std::string(moved.at("assumptions").at(0).as_string()), HasSubstr("partition 0 "));
  EXPECT_GE(moved.at("in_time").at("saving_pct").to_number<double>(),
            found.at("configurations").at(0).at("in_time").at("saving_pct").to_number<double>() - 0.1);
  EXPECT_THAT(std::string(found.at("left_out").at(0).at("reason").as_string()),
              HasSubstr("zbv+partition-best: only schedules with one stage on each rank"));
  EXPECT_EQ(run_perseus({"verify", out}).exit_code, 0);
}

TEST(PlanSearch, OtherPartitionsStayWithinTheMemoryOfAModel) {
  const auto found_within = [](const std::string& gib) {
    return search_json_of({"--schedule", "1f1b,gpipe", "--stage-layers", "6", "--slowdown", "0.3%", "--memory-model",
                           "gpt3-1b", "--microbatch-size", "1", "--precision", "bf16", "--memory-limit", gib});
  };
  const auto memory_gib = [](const json::object& found) {
    std::map<std::string, double> all;
    for (const json::value& c : found.at("configurations").as_array()) {
      all[std::string(c.at("name").as_string())] = c.at("memory_gib").to_number<double>();
    }
    return all;
  };
  const std::map<std::string, double> wide = memory_gib(found_within("80"));
  ASSERT_EQ(wide.size(), 4u);
  // 1F1B's best partition gives a seventh layer to stage 0, which holds four microbatches.
  EXPECT_GT(wide.at("1f1b+partition-best"), wide.at("1f1b") + 2);
  const std::map<std::string, double> tight = memory_gib(found_within("19"));
  EXPECT_EQ(tight.size(), 2u);
  EXPECT_LE(tight.at("1f1b+partition-best"), 19);
  // GPipe fits only on another partition than the measured one.
  const std::map<std::string, double> between = memory_gib(found_within("24"));
  EXPECT_EQ(between.count("gpipe"), 0u);
  EXPECT_LE(between.at("gpipe+partition-best"), 24);
  EXPECT_GT(wide.at("gpipe"), 24);
}

TEST(PlanSearch, RefusesInOneClearSentence) {
  const auto refusal = [](const std::vector<std::string>& more) {
    const Outcome outcome = run_perseus(search_words(more));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_EQ(lines_of(outcome.err).size(), 1u) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refusal({"--schedule", "1f1b,none"}), HasSubstr("none not in {gpipe,1f1b"));
  EXPECT_THAT(refusal({"--schedule", "1f1b,"}), HasSubstr("'1f1b,' has an empty name"));
  EXPECT_THAT(refusal({"--schedule", ",1f1b"}), HasSubstr("',1f1b' has an empty name"));
  EXPECT_THAT(refusal({"--schedule", "best,1f1b"}), HasSubstr("'best,1f1b': best stands for every schedule"));
  EXPECT_THAT(refusal({"--ranks", "3"}), HasSubstr("3 stages are needed and 4 were measured"));
  EXPECT_THAT(refusal({"--stage-layers", "3", "--memory", "memory.csv"}),
              HasSubstr("memory.csv has the memory of the measured stages, not that of other partitions; allowed: "
                        "--stage-layers with --memory-model NAME"));
  EXPECT_THAT(refusal({"--stage-layers", "6", "--memory-model", "gpt3-1b", "--memory-layers", "6,6,7,5"}),
              HasSubstr("--memory-layers 6,6,7,5: --stage-layers are 6,6,6,6"));
  EXPECT_THAT(refusal({"--stage-layers", "3", "--memory-model", "gpt3-1b"}), HasSubstr("12 layers on 4 stages"));
  EXPECT_THAT(refusal({"--schedule", "1f1b,1f1b"}), HasSubstr("1f1b is named twice"));
  EXPECT_THAT(refusal({"--schedule", "1f1b,gpipe", "--reference-schedule", "zbv"}),
              HasSubstr("zbv is not tried; allowed: 1f1b, gpipe"));
  EXPECT_THAT(refusal({"--recompute", "best"}), HasSubstr("--measured-with"));
  EXPECT_THAT(refusal({"--schedule", "best", "--straggler", "1.2"}),
              HasSubstr("not supported with several configurations"));
  EXPECT_THAT(refusal({"--memory-limit", "80"}), HasSubstr("--memory"));
  EXPECT_THAT(refusal({"--stage-layers", "0"}), HasSubstr("1 to 10000"));
  EXPECT_THAT(refusal({"--schedule", "best", "--memory", "/nowhere.csv"}), HasSubstr("/nowhere.csv"));
}

TEST(PlanSearch, PrintsTheSavingOfEachChange) {
  const json::object all = search_json_of({"--schedule", "1f1b,zero-bubble", "--recompute", "best", "--measured-with",
                                           "recomputation", "--stage-layers", "6", "--slowdown", "0.3%"});
  std::vector<std::string> names;
  double before_pct = 0, sum_pct = 0;
  for (const json::value& row : all.at("changes").as_array()) {
    names.emplace_back(row.at("change").as_string());
    const double saving_pct = row.at("saving_pct").to_number<double>();
    EXPECT_GE(saving_pct, before_pct) << names.back() << ": a change that is allowed need not be made";
    EXPECT_GE(row.at("most_pct").to_number<double>(), saving_pct) << names.back();
    EXPECT_FALSE(row.at("assumes").as_array().empty()) << names.back();
    sum_pct += row.at("more_pct").to_number<double>();
    before_pct = saving_pct;
  }
  EXPECT_THAT(
      names, ::testing::ElementsAre("clocks alone", "+ 0.3 % of time", "+ recomputation", "+ schedule", "+ partition"));
  const json::object& chosen = all.at("default_plan").as_object();
  EXPECT_NEAR(before_pct, chosen.at("saving_pct").to_number<double>(), 1e-9);
  EXPECT_NEAR(sum_pct, before_pct, 1e-9);
  // "Clocks alone" equals the savings of a plan of the reference configuration by itself.
  const json::object alone = json::parse(run_perseus(search_words({"--json"})).out).as_object();
  EXPECT_EQ(all.at("changes").as_array().front().at("energy_j"), alone.at("default_plan").at("energy_j"));
}

TEST(PlanSearch, ANoisyProfileHasExpectedValues) {
  const ScratchFolder scratch;
  const std::string noisy = noisy_sample(scratch), out = scratch.path("plans");
  std::vector<std::string> words{"plan", noisy, "-m", "6", "--blocking-power", "90", "--deadlines", "10", "--json"};
  const json::value alone = json::parse(run_perseus(words).out);
  words.insert(words.end(), {"--schedule", "1f1b,zero-bubble,zbv", "--recompute", "best", "--measured-with",
                             "recomputation", "--stage-layers", "6", "--out", out});
  const Outcome outcome = run_perseus(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("expected values"));
  const json::value all = json::parse(outcome.out);
  // Clocks alone are the plan of that schedule by itself: expected values on both sides.
  const json::value &clocks = all.at("changes").at(0), &chosen = alone.at("default_plan");
  EXPECT_GT(chosen.at("time_s").to_number<double>(), chosen.at("time_of_means_s").to_number<double>());
  EXPECT_EQ(clocks.at("time_s"), chosen.at("time_s"));
  EXPECT_EQ(clocks.at("energy_j"), chosen.at("energy_j"));
  EXPECT_EQ(all.at("reference").at("time_s"), alone.at("t_max_s"));
  for (const json::value& configuration : all.at("configurations").as_array()) {
    const std::string name(configuration.at("name").as_string());
    const json::value file = json::parse(content_of(fs::path(out) / name / "plans.json"));
    EXPECT_GT(file.at("maximum_clock_noise").at(1).to_number<double>(), 0) << name;
  }
  const Outcome verified = run_perseus({"verify", out, "--profile", noisy});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

/// The sample with microbatches of twice the size, which take `factor` times the time and energy.
std::string twice_the_size(const ScratchFolder& scratch, double factor) {
  std::istringstream sample(content_of(sample_profile()));
  std::string line, csv;
  while (std::getline(sample, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::vector<std::string> all;
    for (std::string field; std::getline(fields, field, ',');) all.push_back(field);
    if (!csv.empty()) {
      for (const std::size_t f : {3, 4}) all[f] = std::to_string(factor * std::stod(all[f]));
    }
    csv += fmt::format("{}\n", fmt::join(all, ","));
  }
  const std::string path = scratch.path("twice.csv");
  std::ofstream(path) << csv;
  return path;
}

TEST(PlanSearch, TriesMicrobatchesOfOtherSizesAtTheSameGlobalBatch) {
  const ScratchFolder scratch;
  const std::string other = twice_the_size(scratch, 1.5), out = scratch.path("plans");
  const Outcome outcome = run_perseus(search_words({"--microbatch-profile", "3=" + other, "--out", out}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("1f1b+microbatches-3"), HasSubstr("3 microbatches of 2 times the size")));
  const Outcome verified = run_perseus({"verify", out});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  // Its folder's plans are those of that profile and count.
  const json::object alone =
      json::parse(run_perseus({"plan", other, "-m", "3", "--blocking-power", "90", "--deadlines", "50", "--json"}).out)
          .as_object();
  const json::object member =
      json::parse(run_perseus({"lookup", out + "/1f1b+microbatches-3", "--json"}).out).as_object();
  EXPECT_EQ(alone.at("default_plan").at("time_s"), member.at("time_s"));
  EXPECT_EQ(alone.at("default_plan").at("energy_j"), member.at("energy_j"));
}

TEST(PlanSearch, MicrobatchProfilesThatCannotBeAreRefused) {
  const ScratchFolder scratch;
  const std::string other = twice_the_size(scratch, 1.9);
  const auto refused = [&](const std::vector<std::string>& more) {
    const Outcome outcome = run_perseus(search_words(more));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(refused({"--microbatch-profile", other}), HasSubstr("expected COUNT=FILE.csv"));
  EXPECT_THAT(refused({"--microbatch-profile", "0=" + other}), HasSubstr("expected COUNT=FILE.csv"));
  EXPECT_THAT(refused({"--microbatch-profile", "6=" + other}), HasSubstr("6 microbatches are given twice"));
  EXPECT_THAT(refused({"--microbatch-profile", "3=" + other, "--microbatch-profile", "3=" + other}),
              HasSubstr("3 microbatches are given twice"));
  EXPECT_THAT(refused({"--microbatch-profile", "3=" + scratch.path("none.csv")}), HasSubstr("none.csv"));
  const std::string few = scratch.path("few.csv");
  std::ofstream(few) << "stage,instruction,frequency,time,energy\n0,forward,1000,1,1\n0,backward,1000,2,2\n";
  EXPECT_THAT(refused({"--microbatch-profile", "3=" + few}), HasSubstr("profiles of the same ranks"));
}

}  // namespace
}  // namespace perseus::testing
