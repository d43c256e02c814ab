// Help is an interface: every command's has one form, two are as tests/apps/golden has them, and the commands of
// docs/plan.md work.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error_table.h"
#include "program.h"

namespace perseus::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

void expect_golden(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(PERSEUS_SOURCE_DIR) / "tests/apps/golden" / name;
  if (std::getenv("PERSEUS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  ASSERT_TRUE(fs::exists(path)) << "run once with PERSEUS_UPDATE_GOLDEN=1";
  EXPECT_EQ(text, content_of(path)) << "if this is meant, run with PERSEUS_UPDATE_GOLDEN=1 and read the difference";
}

/// The lines between a heading and a line, an empty one if it is not said.
std::vector<std::string> section(const std::string& help, const std::string& from, const std::string& to = "") {
  std::vector<std::string> lines;
  bool within = false;
  for (const std::string& line : lines_of(help)) {
    if (line == from) {
      within = true;
    } else if (within && line == to) {
      break;
    } else if (within) {
      lines.push_back(line);
    }
  }
  return lines;
}

/// The first words of the lines under "Subcommands:", and what they are for.
std::vector<std::pair<std::string, std::string>> subcommands_in(const std::string& help) {
  std::vector<std::pair<std::string, std::string>> named;
  for (const std::string& line : section(help, "Subcommands:")) {
    const std::size_t space = line.find(' ', 2);
    named.emplace_back(line.substr(2, space - 2), line.substr(line.find_first_not_of(' ', space)));
  }
  return named;
}

TEST(Help, IsAsWritten) {
  expect_golden("help.txt", run_perseus({"--help"}).out);
  expect_golden("help_plan.txt", run_perseus({"plan", "--help"}).out);
}

/// Every command's help: what it is for, usage, arguments that each say what they are, examples of this command, exit
/// codes.
void expect_form(std::vector<std::string> command, const std::string& purpose) {
  const std::string name = fmt::format("perseus {}", fmt::join(command, " "));
  SCOPED_TRACE(name);
  command.emplace_back("--help");
  const Outcome outcome = run_perseus(command);
  command.pop_back();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[0], purpose);
  EXPECT_THAT(lines[1], StartsWith("Usage: " + name + " [OPTIONS]"));

  const std::string arguments = outcome.out.substr(0, outcome.out.find("\nSubcommands:\n"));
  std::set<std::string> seen;
  for (const std::string& line : lines_of(arguments.substr(0, arguments.find("\nExamples:\n")))) {
    if (!line.starts_with("  ") || line[2] == ' ') continue;
    EXPECT_LE(line.size(), 80u) << line;
    const std::string argument = line.substr(2, line.find(' ', 2) - 2);
    EXPECT_TRUE(seen.insert(argument).second) << argument << " is there twice";
    const std::size_t next = outcome.out.find(line) + line.size();
    const bool described = line.size() > 28 || outcome.out.compare(next, 29, "\n" + std::string(28, ' ')) == 0;
    EXPECT_TRUE(described) << argument << " does not say what it is";
  }

  const std::vector<std::string> examples = section(outcome.out, "Examples:", "Exit codes:");
  EXPECT_THAT(examples, Contains(StartsWith("  perseus " + command.front())));
  const std::vector<std::string> codes = section(outcome.out, "Exit codes:");
  ASSERT_THAT(codes, Not(IsEmpty()));
  EXPECT_EQ(codes.front(), "   0  done");
  for (const std::string& code : codes) EXPECT_THAT(code, AnyOf(StartsWith("  "), StartsWith("Of them: ")));
  for (const auto& [subcommand, what] : subcommands_in(outcome.out)) {
    std::vector<std::string> words = command;
    words.push_back(subcommand);
    expect_form(std::move(words), what);
  }
}

TEST(Help, OfEveryCommandHasOneForm) {
  const auto commands = subcommands_in(run_perseus({"--help"}).out);
  ASSERT_GE(commands.size(), 8u);
  for (const auto& [command, what] : commands) expect_form({command}, what);
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

/// The lines under a command of the page that no server answers are of its output, some left out.
TEST(TutorialPage, ItsFiguresAreOfItsCommands) {
  const ScratchFolder scratch;
  fs::copy_file(sample_profile(), scratch.path("sample_profile.csv"));
  std::vector<std::string> output;
  int compared = 0;
  for (const std::string& line : lines_of(content_of(fs::path(PERSEUS_SOURCE_DIR) / "docs/tutorial.md"))) {
    if (line.starts_with("    perseus plan ") || line.starts_with("    perseus lookup ")) {
      const Outcome outcome = run_perseus_line(line.substr(line.find("perseus ") + 8), {.folder = scratch.path()});
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      output = lines_of(outcome.out);
    } else if (line.starts_with("    ") && !output.empty()) {
      EXPECT_THAT(output, Contains(line.substr(4)));
      ++compared;
    } else if (!line.empty()) {
      output.clear();
    }
  }
  EXPECT_GE(compared, 5);
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
