#include "program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "base/result.h"

namespace perseus::testing {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  PERSEUS_CHECK(file.good(), path.c_str());
  std::ostringstream content;  // in blocks: a character at a time takes a sanitizer's tests seconds
  content << file.rdbuf();
  return std::move(content).str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string sample_profile() { return PERSEUS_SOURCE_DIR "/data/sample_profile.csv"; }

namespace {

/// Every exit code that a test sees is in the command's help.
void expect_in_help(const std::string& command, int exit_code) {
  static std::map<std::string, std::string> helps;
  if (exit_code <= 0 || command.starts_with('-') || command.find('/') != std::string::npos) return;
  auto known = helps.find(command);
  if (known == helps.end()) {
    const Outcome help = run_perseus({command, "--help"});
    known = helps.emplace(command, help.exit_code == 0 ? help.out : "").first;
  }
  const std::string& text = known->second;
  if (text.empty()) return;  // no command
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

std::string noisy_sample(const ScratchFolder& scratch) {
  std::string csv;
  std::uint64_t state = 1;
  const auto noise = [&] {  // a sum of four uniform numbers is normal enough
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      sum += static_cast<double>(state >> 11U) * 0x1p-53 - 0.5;
    }
    return 1 + 0.02 * std::sqrt(3.0) * sum;
  };
  for (const std::string& line : lines_of(content_of(sample_profile()))) {
    const std::size_t energy = line.rfind(','), time = line.rfind(',', energy - 1);
    if (csv.empty()) {
      csv = line + "\n";
      continue;
    }
    csv += fmt::format("{},{:.9f},{:.9f}\n", line.substr(0, time), std::stod(line.substr(time + 1)) * noise(),
                       std::stod(line.substr(energy + 1)) * noise());
  }
  return scratch.file("noisy.csv", csv);
}

}  // namespace perseus::testing
