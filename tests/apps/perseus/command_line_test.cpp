// Mistyped command lines: each prints one line that names the mistake, exits with the right code, and writes no
// files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "program.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

constexpr int kUsage = 64, kNotFound = 66, kUnavailable = 69, kCannotWrite = 73, kConflict = 75;

void expect_mistake(const Words& words, int exit_code, const std::string& message, const RunOptions& options = {}) {
  const Outcome outcome = run_perseus(words, options);
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_THAT(lines_of(outcome.err), SizeIs(1)) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(message));
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST(StandardOutput, ThatCannotBeWrittenIsAFailure) {
  const auto full = [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  for (const std::string program : {"perseus", "perseus-clockd", "perseus-replay"}) {
    for (const std::string word : {"--help", "--version"}) {
      const Outcome outcome = run_perseus({word}, {.prepare = full, .program = program});
      EXPECT_EQ(outcome.exit_code, kCannotWrite) << program << ' ' << word;
      EXPECT_THAT(outcome.err, StartsWith(program + ": standard output: cannot be written")) << word;
    }
  }
  const Words plan{"plan", sample_profile(), "--blocking-power", "90", "--deadlines", "2"};
  for (const Words& more : {Words{}, {"--json"}, {"--json", "--out", "plans"}}) {
    const ScratchFolder scratch;
    Words words = plan;
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run_perseus(words, {.folder = scratch.path(), .prepare = full}).exit_code, kCannotWrite);
  }
  EXPECT_EQ(run_perseus({"plan", "/nonexistent", "--json"}, {.prepare = full}).exit_code, kNotFound);
}

TEST(StandardError, ThatCannotBeWrittenStopsNothing) {
  const auto full = [] { ::dup2(::open("/dev/full", O_WRONLY), STDERR_FILENO); };
  const auto closed = [] { ::close(STDERR_FILENO); };
  for (const std::function<void()>& prepare : {std::function<void()>(full), std::function<void()>(closed)}) {
    const ScratchFolder scratch;
    const RunOptions options{.folder = scratch.path(), .prepare = prepare};
    const Words plan{"plan", sample_profile(), "--deadlines", "2", "--out", "plans"};  // notes that no power is given
    EXPECT_EQ(run_perseus(plan, options).exit_code, 0);
    EXPECT_EQ(run_perseus({"verify", "plans"}, options).exit_code, 0);
    EXPECT_EQ(run_perseus({"plan", "/nonexistent"}, options).exit_code, kNotFound);
    EXPECT_EQ(run_perseus({"--bogus"}, options).exit_code, kUsage);
  }
}

TEST(PerseusCommandLine, ErrorsNameUnknownArguments) {
  expect_mistake({"plna"}, kUsage, "unknown command 'plna'; did you mean 'plan'? (see 'perseus --help')");
  expect_mistake({"steer"}, kUsage, "unknown command 'steer'; allowed: plan, advise, compare");
  expect_mistake({"help", "job", "lst"}, kUsage, "unknown command 'lst'; did you mean 'list'?");
  expect_mistake({"help", "plan", "a.csv"}, kUsage, "unknown argument 'a.csv'");
  expect_mistake({"--verbose"}, kUsage, "unknown option '--verbose' (see 'perseus --help')");
  expect_mistake({"site", "limit", "row", "--", "nan"}, kUsage,
                 "WATTS: 'nan' is not a number from 0 to 1e+12 W (see 'perseus site limit --help')");
  expect_mistake({"job", "stop"}, kUsage,
                 "unknown command 'stop'; allowed: list, history, ranks, show, set, delete, finish");
  expect_mistake({"lookup", "--dedline=3"}, kUsage,
                 "unknown option '--dedline'; did you mean '--deadline'? (see 'perseus lookup --help')");
  expect_mistake({"plan", "a.csv", "b.csv"}, kUsage, "unknown argument 'b.csv'");
}

TEST(PerseusCommandLine, PrintsHelpWithoutArguments) {
  const auto out_of = [](const Words& words) {
    const Outcome outcome = run_perseus(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, IsEmpty());
    return outcome.out;
  };
  EXPECT_THAT(out_of({}), HasSubstr("Start with: perseus plan"));
  EXPECT_EQ(out_of({}), out_of({"--help"}));
  EXPECT_EQ(out_of({"help"}), out_of({"--help"}));
  EXPECT_EQ(out_of({"help", "plan"}), out_of({"plan", "--help"}));
  EXPECT_EQ(out_of({"help", "help"}), out_of({"help", "--help"}));
  EXPECT_EQ(out_of({"help", "-h"}), out_of({"help", "--help"}));
  EXPECT_NE(out_of({"help", "help"}), out_of({"--help"}));
  EXPECT_EQ(out_of({"help", "plan", "--help"}), out_of({"plan", "--help"}));
  EXPECT_EQ(out_of({"help", "job", "list"}), out_of({"job", "list", "--help"}));
  EXPECT_EQ(out_of({"job"}), out_of({"job", "--help"}));
  const Outcome json = run_perseus({"--json"});
  EXPECT_EQ(json.exit_code, kUsage);
}

TEST(PerseusCommandLine, KnowsSchedulesByThePyTorchClass) {
  const auto planned = [](const std::string& schedule) {
    const Outcome outcome = run_perseus({"plan", sample_profile(), "--blocking-power", "90", "--deadlines", "2", "-m",
                                         "8", "--schedule", schedule, "--split-backward", "0.5"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out.substr(0, outcome.out.find("planned in"));
  };
  for (const auto& [class_name, ours] :
       {std::pair("Schedule1F1B", "1f1b"), std::pair("1F1B", "1f1b"), std::pair("ScheduleGPipe", "gpipe"),
        std::pair("scheduleinterleaved1f1b", "interleaved-1f1b"),
        std::pair("ScheduleInterleavedZeroBubble", "zero-bubble"), std::pair("ScheduleZBVZeroBubble", "zbv")}) {
    EXPECT_THAT(planned(ours), HasSubstr(std::string("schedule: ") + ours));
    EXPECT_EQ(planned(class_name), planned(ours));
  }
  EXPECT_THAT(planned("ScheduleGPipe,Schedule1F1B"), HasSubstr("gpipe"));
  expect_mistake({"plan", sample_profile(), "--schedule", "ScheduleNew"}, kUsage, "--schedule: ScheduleNew not in");
}

TEST(PerseusCommandLine, RefusesValuesThatAreNone) {
  expect_mistake({"plan", "a.csv", "--out", ""}, kUsage, "--out: the value is empty");
  expect_mistake({"plan", "a.csv", "--out="}, kUsage, "--out=: the value is empty");
  expect_mistake({"demo", "--scratch", ""}, kUsage, "--scratch: the value is empty");
  expect_mistake({"plan", ""}, kUsage, "an argument is empty");
  expect_mistake({"plan", "a.csv", "--out"}, kUsage, "--out: the value is missing");
  expect_mistake({"plan", "a.csv", "--tau", "1", "--tau", "2"}, kUsage, "--tau: given more than once; allowed: once");
  expect_mistake({"plan", "a.csv", "--microbatches", "1.5"}, kUsage,
                 "--microbatches: '1.5' is not a whole number from 1 to 1048576");
  expect_mistake({"show", "plans", "--point", "nan"}, kUsage, "--point: 'nan' is not a whole number");
  expect_mistake({"straggler", "set", "--degree", "nan"}, kUsage, "--degree: 'nan' is not a number from 1 to 1000");
  expect_mistake({"straggler", "set", "--degree", "1001"}, kUsage, "--degree: '1001' is not a number from 1 to 1000");
  expect_mistake({"lookup", "plans", "--ratio", "0.5"}, kUsage, "--ratio: '0.5' is not a number from 1 to 1e+09");
  expect_mistake({"token", "create", "--role", "root"}, kUsage, "--role: root not in");
}

TEST(PerseusCommandLine, ATokenIsNotMadeInADatabaseThatNobodyMeant) {
  const ScratchFolder scratch;
  const std::string data = scratch.path("mistyped");
  expect_mistake({"token", "require", "off", "--data", data}, kNotFound, "mistyped/perseus.db: no such database");
  expect_mistake({"token", "create", "--role", "job", "--data", data}, kConflict,
                 "the first token must have the role infrastructure");
  EXPECT_FALSE(std::filesystem::exists(data));
  const Outcome made = run_perseus({"token", "create", "--role", "infrastructure", "--data", data});
  EXPECT_EQ(made.exit_code, 0);
  EXPECT_THAT(made.err, HasSubstr("mistyped/perseus.db is a new database"));
  EXPECT_THAT(made.out, MatchesRegex("perseus_[0-9a-f]+\n"));
  const Outcome other = run_perseus({"token", "create", "--role", "job", "--data", data, "--json"});
  EXPECT_THAT(other.out, MatchesRegex(R"(\{"token":"perseus_[0-9a-f]+","id":"[0-9a-f]+"\}.*)"));
  EXPECT_THAT(other.err, IsEmpty());
}

TEST(PerseusCommandLine, MistakesBeforeJsonIsReadAreJsonToo) {
  const Outcome outcome = run_perseus({"plan", "a.csv", "--microbatches", "1.5", "--json"});
  EXPECT_EQ(outcome.exit_code, kUsage);
  EXPECT_THAT(outcome.out, StartsWith(R"({"error":{"code":"usage","message":"--microbatches: '1.5')"));
  for (const Words& json : {Words{"--json"}, {"-o", "json"}, {"-ojson"}, {"--output=json"}, {"--output", "json"}}) {
    Words words{"job", "list", "--sort", "size"};
    words.insert(words.end(), json.begin(), json.end());
    EXPECT_THAT(run_perseus(words).out, StartsWith(R"({"error":{"code":"usage","message":"--sort: 'size')")) << json[0];
  }
}

TEST(PerseusCommandLine, ListsNameTheirFormsAndColumns) {
  expect_mistake({"job", "list", "-o", "yaml"}, kUsage, "--output: yaml not in {table,wide,json,csv}");
  expect_mistake({"token", "list", "--sort", "size"}, kUsage,
                 "--sort: 'size' is not a column; allowed: id, role, name, team, job, age, expires");
}

TEST(PerseusCommandLine, ServerSettingsAreCheckedBeforeTheyArePrinted) {
  const ScratchFolder scratch;
  expect_mistake({"serve", "--config", scratch.path(), "--print-config"}, kNotFound, "Is a directory");
  expect_mistake({"serve", "--config", scratch.path("none"), "--print-config"}, kNotFound, "No such file");
  expect_mistake({"serve", "--workers", "many", "--print-config"}, kUsage, "'many' is not a number from 1 to 1024");
  expect_mistake({"serve", "--data", scratch.path("a"), "--database", "b"}, kUsage, "both --data and --database");
  EXPECT_THAT(scratch.names(), IsEmpty());
}

TEST(PerseusCommandLine, OutputKeepsALinkALink) {
  const ScratchFolder scratch;
  const std::string layers = scratch.file("layers.csv", "name,forward_s\na,1\nb,2\n");
  const std::string target = scratch.file("target", ""), link = scratch.path("link");
  fs::create_symlink(target, link);
  const Outcome outcome = run_perseus({"partition", layers, "--stages", "2", "--layers-out", link});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_THAT(content_of(target), StartsWith("name,"));
}

TEST(DemoCommandLine, NamesTheFolderThatCannotBeUsed) {
  const ScratchFolder scratch;
  const std::string file = scratch.file("file", "");
  for (const std::string& folder : {scratch.path("none"), file}) {
    const RunOptions in_folder{.folder = scratch.path(), .prepare = [&] { ::setenv("TMPDIR", folder.c_str(), 1); }};
    expect_mistake({"demo"}, kCannotWrite, "temporary directory " + folder + ": ", in_folder);
  }
  const RunOptions here{.folder = scratch.path()};
  expect_mistake({"demo", "--scratch", file}, kCannotWrite, "--scratch " + file + ": Not a directory", here);
}

struct ClockdMistake {
  Words words;
  int exit_code;
  std::string message;
};

TEST(ClockdCommandLine, NamesTheMistakeAndLeavesNothingBehind) {
  const ScratchFolder scratch;
  const std::string socket = scratch.path("clockd.sock"), folder = fs::path(socket).parent_path();
  const std::vector<ClockdMistake> mistakes{
      {{}, kUsage, "no command; allowed: --daemon, --restore"},
      {{"--socket", socket}, kUsage, "unknown command --socket; allowed: --daemon"},
      {{"--restore", "--all"}, kUsage, "--restore: unknown option --all"},
      {{"--restore", ""}, kUsage, "--restore: the path of the lease is empty"},
      {{"--restore", socket, "soon"}, kUsage, "SECONDS: 'soon'; allowed: 0 to 3600"},
      {{"--restore", socket, "nan"}, kUsage, "SECONDS: 'nan'; allowed: 0 to 3600"},
      {{"--restore", socket, "1", "2"}, kUsage, "one argument too many: 2"},
      {{"--restore", socket}, kUnavailable, socket + ": No such file"},
      {{"--daemon", "--socket", socket, "--verbose"}, kUsage, "unknown option --verbose; allowed: --socket PATH"},
      {{"--daemon", "--socket", socket, "--mode"}, kUsage, "--mode has no value"},
      {{"--daemon", "--socket", socket, "--socket", socket}, kUsage, "--socket is given twice"},
      {{"--daemon", "--socket", socket, "--mode", "9"}, kUsage, "--mode: '9'; allowed: octal, 0 to 0777"},
      {{"--daemon", "--socket", socket, "--ceiling", "0"}, kUsage, "--ceiling: '0'; allowed: 1 to 65535"},
      {{"--daemon", "--socket", socket, "--ceiling", "1e9"}, kUsage, "--ceiling: '1e9'; allowed: 1 to 65535"},
      {{"--daemon", "--socket", socket, "--group", ""}, kUsage, "--group: ''; allowed: the name of a group"},
      {{"--daemon", "--socket", socket, "--group", "no-such"}, kUsage, "--group: 'no-such'; allowed: the name"},
      {{"--daemon", "--socket", ""}, kUsage, "--socket: ''; allowed: a path of 1 to 103 bytes"},
      {{"--daemon", "--socket", std::string(104, 'x')}, kUsage, "allowed: a path of 1 to 103 bytes"},
      {{"--daemon", "--socket", folder}, kUnavailable, "--socket " + folder + ": cannot listen there: it exists"},
      {{"--daemon", "--socket", folder + "/none/x"}, kUnavailable, "/none/x: cannot listen there: No such file"},
      {{"--daemon", "--socket", "/dev/null/x"}, kUnavailable, "--socket /dev/null/x: cannot listen there: Not a dir"},
  };
  for (const ClockdMistake& mistake : mistakes) {
    expect_mistake(mistake.words, mistake.exit_code, mistake.message, {.program = "perseus-clockd"});
    EXPECT_THAT(scratch.names(), IsEmpty()) << mistake.message;
  }
  // The last step before it listens fails.
  fs::create_directory(socket + ".new");
  expect_mistake({"--daemon", "--socket", socket}, kUnavailable, "cannot listen there", {.program = "perseus-clockd"});
  EXPECT_THAT(scratch.names(), ElementsAre("clockd.sock.new"));
}

}  // namespace
}  // namespace perseus::testing
