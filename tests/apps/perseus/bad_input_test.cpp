// Every bad input ends with one clear error, the right exit code, and nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "program.h"
#include "tests/support/shared_data.h"

namespace perseus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int usage = 64, invalid_input = 65, not_found = 66, cannot_write = 73;

/// Runs the program with these arguments and an --out folder that must not appear.
void expect_failure(std::vector<std::string> arguments, int exit_code, const std::string& says) {
  const ScratchFolder scratch;
  arguments.insert(arguments.end(), {"--out", scratch.path("plans")});
  const Outcome outcome = run_perseus(arguments);
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(lines_of(outcome.err), SizeIs(1)) << outcome.err;
  EXPECT_THAT(outcome.err, StartsWith("perseus: "));
  EXPECT_THAT(outcome.err, HasSubstr(says));
  EXPECT_THAT(scratch.names(), IsEmpty());
}

struct BadProfile {
  std::string name;
  std::string content;
  std::string says;  ///< after the file's name
};

void PrintTo(const BadProfile& bad, std::ostream* out) { *out << bad.name; }

class BadProfiles : public ::testing::TestWithParam<BadProfile> {};

const std::string header = "stage,instruction,frequency,time,energy\n";
const std::string good_rows = "0,forward,1000,0.1,10\n0,backward,1000,0.2,20\n";

TEST_P(BadProfiles, AreRefused) {
  const ScratchFolder scratch;
  const std::string profile = scratch.file("profile.csv", GetParam().content);
  expect_failure({"plan", profile, "--blocking-power", "50"}, invalid_input, profile + GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadProfiles,
    ::testing::Values(BadProfile{"empty", "", ""}, BadProfile{"header_only", header, ""},
                      BadProfile{"missing_column", "stage,instruction,frequency,time\n0,forward,1000,0.1\n", ":1:"},
                      BadProfile{"not_a_number", header + "0,forward,1000,nan,10\n" + good_rows, ":2:"},
                      BadProfile{"negative_time", header + good_rows + "0,forward,900,-1,10\n", ":4:"},
                      BadProfile{"zero_time", header + good_rows + "0,forward,900,0,10\n", ":4:"},
                      BadProfile{"negative_energy", header + good_rows + "0,forward,900,0.1,-1\n", ":4:"},
                      BadProfile{"words_for_numbers", header + good_rows + "0,forward,fast,0.1,1\n", ":4:"},
                      BadProfile{"short_row", header + good_rows + "0,forward,900\n", ":4:"},
                      BadProfile{"unknown_instruction", header + good_rows + "0,sideways,900,1,1\n", ":4:"},
                      BadProfile{"stage_without_rows", header + good_rows + "2,forward,900,1,1\n2,backward,900,1,1\n",
                                 ""},
                      BadProfile{"no_backward", header + "0,forward,1000,0.1,10\n", ""},
                      BadProfile{"huge_stage", header + good_rows + "99999999,forward,900,1,1\n", ":4:"},
                      BadProfile{"binary",
                                 std::string("\x7f"
                                             "ELF\0\1\2\3",
                                             8),
                                 ""},
                      BadProfile{"broken_gzip", "\x1f\x8b\x08 and no more", ""}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(BadInput, ProfileThatDoesNotExist) {
  expect_failure({"plan", "/nonexistent/profile.csv"}, not_found, "/nonexistent/profile.csv");
}

TEST(BadInput, BytesOfAFileDoNotReachTheTerminal) {
  const ScratchFolder scratch;
  const std::string profile = scratch.file("profile.csv", std::string("\x1b]0;title\a\x9b"
                                                                      "31m\u009b\u202e,\0,",
                                                                      22) +
                                                              std::string(100'000, 'x'));
  const std::vector<std::string> words{"plan", profile};
  for (const auto& [json, text] :
       {std::pair(false, run_perseus(words).err), std::pair(true, run_perseus({"plan", profile, "--json"}).out)}) {
    EXPECT_THAT(text, HasSubstr(json ? "\\\\x1b]0;title" : "\\x1b]0;title"));
    EXPECT_LT(text.size(), 4000U);
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      EXPECT_TRUE((byte >= 0x20 && byte < 0x7f) || c == '\n') << static_cast<int>(byte);
    }
  }
}

TEST(BadInput, ProfileThatIsAFolder) {
  const ScratchFolder folder;
  expect_failure({"plan", folder.path()}, not_found, folder.path());
}

TEST(BadInput, WrongOptions) {
  const std::string profile = sample_profile();
  expect_failure({"plan"}, usage, "profile");
  expect_failure({"plan", profile, "--schedule", "no-such"}, usage, "no-such");
  expect_failure({"plan", profile, "--microbatches", "0"}, usage, "--microbatches");
  expect_failure({"plan", profile, "--blocking-power", "nan"}, usage, "nan");
  expect_failure({"plan", profile, "--blocking-power", "-1"}, usage, "-1");
  expect_failure({"plan", profile, "--transfer-latency", "inf"}, usage, "inf");
  expect_failure({"plan", profile, "--schedule", "interleaved-1f1b", "--chunks", "3"}, usage, "4 stages");
  expect_failure({"plan", profile, "--straggler", "0.5"}, usage, "--straggler: '0.5'");
  expect_failure({"plan", profile, "--straggler", "soon"}, usage, "'soon'");
  expect_failure({"plan", profile, "--method", "perseus", "--tau", "0"}, usage, "--tau");
  expect_failure({"plan", profile, "--no-such-option"}, usage, "--no-such-option");
  expect_failure({"plan", profile, "--dag", profile}, usage, "exclude");
}

TEST(BadInput, TransferLatenciesOfOtherBoundariesThanTheSchedules) {
  const std::string profile = sample_profile();
  const auto refused = [&](const std::string& latencies, const std::vector<std::string>& more,
                           const std::string& says) {
    std::vector<std::string> words{"plan", profile, "--blocking-power", "90", "--transfer-latency", latencies};
    words.insert(words.end(), more.begin(), more.end());
    expect_failure(words, usage, "--transfer-latency: " + says);
  };
  refused("0.1,0.2", {}, "2 entries; allowed: one for all or 3 (one per boundary of 4 ranks)");
  refused("0.1,0.1,0.1,50", {}, "4 entries; allowed: one for all or 3 (one per boundary of 4 ranks)");
  refused("0.1,0.1,0.1,50", {"--schedule", "1f1b,zero-bubble"}, "4 entries; allowed: one for all or 3 (");
  refused("0.1,0.1,0.1", {"--schedule", "interleaved-1f1b", "--ranks", "4"},
          "3 entries; allowed: one for all or 4 (one per boundary of 4 ranks, and one between the last and the first)");
  // The list has a schedule that uses each entry.
  const Outcome several = run_perseus_line("plan " + profile +
                                           " --blocking-power 90 --deadlines 10 --schedule 1f1b,interleaved-1f1b "
                                           "--transfer-latency 0.001,0.001,0.001,0.002");
  EXPECT_EQ(several.exit_code, 0) << several.err;
}

TEST(BadInput, TransferLatenciesOfAConstantsFileNameIt) {
  const ScratchFolder scratch;
  const std::string constants = scratch.file(
      "constants.json",
      R"({"schedule": "1f1b", "microbatches": 8, "blocking_power_w": 90, "transfer_latency_s": [0.1, 0.1, 0.1, 50]})");
  expect_failure(
      {"plan", sample_profile(), "--constants", constants}, invalid_input,
      constants + ": transfer_latency_s: 4 entries; allowed: one for all or 3 (one per boundary of 4 ranks)");
}

TEST(BadInput, OptionsWithoutEffect) {
  const std::string profile = sample_profile();
  const std::vector<std::vector<std::string>> cases{{"--effort", "low", "--method", "perseus"},
                                                    {"--deadlines", "9", "--method", "perseus"},
                                                    {"--tau", "0.01", "--effort", "low"},
                                                    {"--tau", "0.01"}};
  for (const auto& options : cases) {
    std::vector<std::string> words{"plan", profile};
    words.insert(words.end(), options.begin(), options.end());
    expect_failure(words, usage, options[0] + ": has no effect with --");
  }
  expect_failure({"plan", "--dag", "a.json", "--action-table", "a.csv"}, usage, "--action-table");
  expect_failure({"plan", "--dag", "a.json", "--ranks", "4"}, usage, "--dag: one pipeline");
}

struct Doubtful {
  std::string rows, doubt;
};

TEST(BadInput, MeasurementsThatNoGpuMakes) {
  const ScratchFolder scratch;
  const auto notes_for = [&](const std::string& rows) {
    const std::string profile = scratch.file("profile.csv", header + rows);
    const Outcome outcome = run_perseus({"plan", profile, "--blocking-power", "60", "-m", "2"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.err;
  };
  const std::string forward = "0,forward,1400,0.1,30\n0,forward,1000,0.12,25\n";
  const std::string backward = "0,backward,1400,0.2,60\n0,backward,1000,0.24,50\n";
  EXPECT_EQ(notes_for(forward + backward), "");
  const std::vector<Doubtful> cases{
      {"0,forward,1400,100,30\n0,forward,1000,120,25\n0,backward,1400,200,60\n", "are the times in ms?"},
      {"0,forward,1400,0.1,300\n" + backward, "stage 0, forward, 1400 MHz: 3000 W: no GPU takes more than 2000 W"},
      {"0,forward,1400,0.1,5\n" + backward, "stage 0, forward, 1400 MHz: 50 W: less than the blocking power of 60 W"},
      {"0,forward,1400,0.15,30\n0,forward,1000,0.12,25\n" + backward,
       "stage 0, forward, 1400 MHz: 0.15 s, at 1000 MHz 0.12 s: slower at a higher clock"},
      {"0,forward,1400,0.1,30\n0,backward,1400,0.2,60\n", "one clock only"},
      {"0,forward,900000,0.1,30\n0,forward,1000,0.12,25\n" + backward, "900000 MHz: no GPU has a clock above 5000 MHz"},
      {"0,forward,1400,100,30000\n0,forward,1000,120,25000\n0,backward,1400,200,60000\n", "energies in mJ?"},
  };
  for (const Doubtful& one : cases) {
    const std::string notes = notes_for(one.rows);
    EXPECT_THAT(notes, HasSubstr(one.doubt));
    EXPECT_EQ(std::ranges::count(notes, '\n'), 1) << notes;
  }
  const std::string comma = scratch.file("comma.csv", header + "0,forward,1400,0,1,30\n");
  expect_failure({"plan", comma}, invalid_input, ":2: 6 fields; allowed: 5");
}

TEST(BadInput, DatabaseThatCannotBeLookedFor) {
  const std::string data = "/tmp/" + std::string(300, 'd');
  for (const std::vector<std::string>& words : {std::vector<std::string>{"token", "require", "on", "--data", data},
                                                {"token", "create", "--role", "infrastructure", "--data", data}}) {
    const Outcome outcome = run_perseus(words);
    EXPECT_EQ(outcome.exit_code, cannot_write) << outcome.err;
    EXPECT_EQ(outcome.err, "perseus: " + data + ": File name too long\n");
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

TEST(BadInput, WrongCommands) { expect_failure({"no-such-command"}, usage, "unknown command 'no-such-command'"); }

TEST(BadInput, ActionTableThatDeadlocks) {
  const ScratchFolder scratch;
  const std::string profile = scratch.file(
      "profile.csv", header + good_rows + "0,forward,900,0.11,9\n1,forward,1000,0.1,10\n1,backward,1000,0.2,20\n");
  // Rank 0 orders a backward before its forward.
  const std::string table = scratch.file("table.csv", "0B0,0F0\n1F0,1B0\n");
  expect_failure({"plan", profile, "--action-table", table, "--blocking-power", "50"}, invalid_input, "0");
}

TEST(BadInput, ActionTableForAnotherNumberOfStages) {
  const ScratchFolder scratch;
  const std::string table = scratch.file("table.csv", "0F0,0B0\n1F0,1B0\n");
  expect_failure({"plan", sample_profile(), "--action-table", table, "--blocking-power", "50"}, invalid_input,
                 "stages");
}

TEST(BadInput, DagThatIsNoJson) {
  const ScratchFolder scratch;
  const std::string dag = scratch.file("dag.json", "{\"types\": [");
  expect_failure({"plan", "--dag", dag}, invalid_input, dag);
}

TEST(BadInput, PlansThatAreNone) {
  const ScratchFolder scratch;
  const std::string file = scratch.file("plans.json", "[1, 2]");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"lookup", file, "--ratio", "1"},
                                                {"verify", file},
                                                {"show", file},
                                                {"show", scratch.file("plan.py", "import os")}}) {
    const Outcome outcome = run_perseus(words);
    EXPECT_EQ(outcome.exit_code, invalid_input) << words[0] << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(scratch.path())) << words[0];
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  EXPECT_EQ(run_perseus({"verify", scratch.path("nothing")}).exit_code, not_found);
}

TEST(BadInput, ErrorsAreJsonToo) {
  const Outcome outcome = run_perseus({"plan", "/nonexistent.csv", "--json"});
  EXPECT_EQ(outcome.exit_code, not_found);
  EXPECT_THAT(outcome.out, StartsWith("{\"error\":{\"code\":\"not_found\",\"message\":\"/nonexistent.csv"));
}

TEST(BadInput, OutputThatCannotBe) {
  const ScratchFolder scratch;
  const std::string file = scratch.file("file", "mine");
  for (const std::string& out : {file, file + "/plans", std::string("/dev/null/plans"), std::string("/proc/plans")}) {
    const Outcome outcome = run_perseus({"plan", sample_profile(), "--blocking-power", "90", "--out", out});
    EXPECT_EQ(outcome.exit_code, cannot_write) << outcome.err;
    EXPECT_THAT(lines_of(outcome.err), SizeIs(1));
    EXPECT_THAT(outcome.err, HasSubstr(out));
  }
  EXPECT_EQ(content_of(file), "mine");
  EXPECT_THAT(scratch.names(), SizeIs(1));
}

TEST(BadInput, OutputThatIsALinkIsNotFollowed) {
  namespace fs = std::filesystem;
  const ScratchFolder scratch;
  const fs::path folder = scratch.path("folder"), link = scratch.path("link");
  fs::create_directory(folder);
  fs::create_directory_symlink("folder", link);
  for (const std::string& out : {link.string(), link.string() + "/"}) {
    const Outcome outcome = run_perseus({"plan", sample_profile(), "--blocking-power", "90", "--out", out});
    EXPECT_EQ(outcome.exit_code, cannot_write);
    EXPECT_THAT(outcome.err, HasSubstr("/link: cannot be written: it is a symbolic link; name the directory itself: " +
                                       folder.string() + "\n"));
  }
  EXPECT_TRUE(fs::is_symlink(link) && fs::is_empty(folder));
}

TEST(BadInput, PublishedFilesThatAreNoProfiles) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.find(".csv") == std::string::npos) continue;
    const bool is_profile =
        name.find("profile") != std::string::npos || entry.path().parent_path().filename() == "stage_profile";
    if (is_profile) continue;
    expect_failure({"plan", entry.path().string()}, invalid_input, entry.path().string());
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace perseus::testing
