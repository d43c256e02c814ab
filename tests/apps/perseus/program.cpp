#include "program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/result.h"

namespace perseus::testing {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  PERSEUS_CHECK(file.good(), path.c_str());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string sample_profile() { return PERSEUS_SOURCE_DIR "/data/sample_profile.csv"; }

namespace {

/// Every exit code that a test sees is in the command's help, as tests/apps/golden has it.
void expect_in_help(const std::string& command, int exit_code) {
  const fs::path help = fs::path(PERSEUS_SOURCE_DIR) / "tests/apps/golden" / ("help_" + command + ".txt");
  if (exit_code < 0 || command.find('/') != std::string::npos || !fs::exists(help)) return;
  const std::string text = content_of(help);
  const std::string wanted = (exit_code < 10 ? "\n   " : "\n  ") + std::to_string(exit_code) + "  ";
  EXPECT_NE(text.find(wanted, std::min(text.size(), text.find("Exit codes:"))), std::string::npos)
      << "exit code " << exit_code << " of perseus " << command << " is not in its help";
}

}  // namespace

Outcome run_perseus(const std::vector<std::string>& arguments, const RunOptions& options) {
  const ScratchFolder said;
  std::string name = PERSEUS_PROGRAM;
  if (!options.program.empty()) name = fs::path(name).replace_filename(options.program).string();
  std::vector<char*> words{name.data()};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const std::string out = said.path("out");
  const std::string err = said.path("err");

  const pid_t program = ::fork();
  PERSEUS_CHECK(program >= 0, "fork");
  if (program == 0) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    if (::dup2(::open(out.c_str(), flags, 0600), STDOUT_FILENO) < 0) ::_exit(126);
    if (::dup2(::open(err.c_str(), flags, 0600), STDERR_FILENO) < 0) ::_exit(126);
    if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(126);
    if (options.prepare) options.prepare();
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  if (options.meanwhile) options.meanwhile(program);
  int status = 0;
  PERSEUS_CHECK(::waitpid(program, &status, 0) == program, "waitpid");
  Outcome outcome;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.out = content_of(out);
  outcome.err = content_of(err);
  if (options.program.empty() && !arguments.empty()) expect_in_help(arguments.front(), outcome.exit_code);
  return outcome;
}

Outcome run_perseus_line(std::string_view arguments, const RunOptions& options) {
  std::vector<std::string> words;
  bool quoted = false, in_word = false;
  for (const char c : arguments) {
    if (c == ' ' && !quoted) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '\'') {
      quoted = !quoted;
    } else {
      words.back() += c;
    }
  }
  return run_perseus(words, options);
}

}  // namespace perseus::testing
