// Help is an interface: its text must equal tests/apps/golden, and the commands of docs/plan.md must work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error_table.h"
#include "program.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void expect_golden(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(PERSEUS_SOURCE_DIR) / "tests/apps/golden" / name;
  if (std::getenv("PERSEUS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  ASSERT_TRUE(fs::exists(path)) << "run once with PERSEUS_UPDATE_GOLDEN=1";
  EXPECT_EQ(text, content_of(path)) << "if this is meant, run with PERSEUS_UPDATE_GOLDEN=1 and read the difference";
}

/// The first words of the lines under "Subcommands:".
std::vector<std::string> subcommands_in(const std::string& help) {
  std::vector<std::string> names;
  bool listed = false;
  for (const std::string& line : lines_of(help)) {
    if (listed && !line.starts_with("  ")) break;
    if (listed && line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
    if (line == "Subcommands:") listed = true;
  }
  return names;
}

TEST(Help, IsAsWritten) {
  const Outcome all = run_perseus({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  expect_golden("help.txt", all.out);
  const std::vector<std::string> commands = subcommands_in(all.out);
  ASSERT_GE(commands.size(), 8u);
  for (const std::string& command : commands) {
    const Outcome help = run_perseus({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    expect_golden("help_" + command + ".txt", help.out);
  }
}

/// The meanings in the table of exit codes that a command's help ends with.
std::vector<std::string> exit_code_meanings(const std::string& command) {
  const std::string help = run_perseus({command, "--help"}).out;
  std::vector<std::string> meanings;
  for (const std::string& line : lines_of(help.substr(std::min(help.size(), help.find("Exit codes:\n"))))) {
    if (line.size() > 6 && line.starts_with("  ")) meanings.push_back(line.substr(6));
  }
  return meanings;
}

TEST(Help, ListsOnlyExitCodesThatCanOccur) {
  using ::testing::Contains;
  using ::testing::Not;
  const auto meaning = [](ErrorCode code) { return std::string(entry_of(code).meaning); };
  const std::vector<std::string> offline{"plan",      "advise",    "compare", "lookup",  "verify",   "show",
                                         "partition", "calibrate", "trace",   "emulate", "reproduce"};
  for (const std::string& command : offline) {
    const auto meanings = exit_code_meanings(command);
    for (const ErrorCode code : {ErrorCode::invalid_input, ErrorCode::usage, ErrorCode::not_found})
      EXPECT_THAT(meanings, Contains(meaning(code))) << command;
    for (const ErrorCode code : {ErrorCode::conflict, ErrorCode::unauthorized, ErrorCode::forbidden,
                                 ErrorCode::too_large, ErrorCode::unavailable})
      EXPECT_THAT(meanings, Not(Contains(meaning(code)))) << command;
  }
  EXPECT_THAT(exit_code_meanings("relay"), Not(Contains(meaning(ErrorCode::unauthorized))));
  EXPECT_THAT(exit_code_meanings("job"), Contains(meaning(ErrorCode::unauthorized)));
  EXPECT_THAT(exit_code_meanings("help"), ::testing::ElementsAre("done", meaning(ErrorCode::usage),
                                                                 meaning(ErrorCode::cannot_write), "out of memory"));
}

TEST(Help, PrintsTheVersion) {
  const Outcome version = run_perseus({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ::testing::MatchesRegex(
                               "perseus [0-9]+\\.[0-9]+\\.[0-9]+ \\(commit ([0-9a-f]{12}(-dirty)?|unknown)\\)\n"));
}

TEST(PlanPage, ItsCommandsRun) {
  const ScratchFolder scratch;
  fs::create_directory_symlink(fs::path(PERSEUS_SOURCE_DIR) / "data", scratch.path("data"));
  int commands = 0;
  for (const std::string& line : lines_of(content_of(fs::path(PERSEUS_SOURCE_DIR) / "docs/plan.md"))) {
    constexpr std::string_view prompt = "    perseus ";
    if (!line.starts_with(prompt)) continue;
    std::istringstream words(line.substr(prompt.size()));
    std::vector<std::string> arguments;
    for (std::string word; words >> word && word != "#";) arguments.push_back(word);
    const Outcome outcome = run_perseus(arguments, {scratch.path(), {}, {}});
    EXPECT_EQ(outcome.exit_code, 0) << line << "\n" << outcome.err;
    ++commands;
  }
  EXPECT_GE(commands, 4);
}

TEST(PlanPage, ItsOutputIsIgnoredByGit) {
  const std::string ignored = "\n" + content_of(fs::path(PERSEUS_SOURCE_DIR) / ".gitignore");
  const std::string page = content_of(fs::path(PERSEUS_SOURCE_DIR) / "docs/plan.md") +
                           content_of(fs::path(PERSEUS_SOURCE_DIR) / "docs/reproduction.md");
  int outputs = 0;
  constexpr std::string_view option = "--out ";
  for (auto at = page.find(option); at != std::string::npos; at = page.find(option, at + 1)) {
    const std::size_t begins = at + option.size();
    const std::string name = page.substr(begins, page.find_first_of(" `\n", begins) - begins);
    if (name == "DIR") continue;
    EXPECT_THAT(ignored, HasSubstr("\n/" + name + "/\n"));
    ++outputs;
  }
  EXPECT_GE(outputs, 2);
}

}  // namespace
}  // namespace perseus::testing
