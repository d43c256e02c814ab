// Runs the real program and captures its output. An exit code that the command's help lacks fails the test.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace perseus::testing {

struct Outcome {
  int exit_code = -1;  ///< -1 if a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
  [[nodiscard]] std::string text() const { return out + err; }
};

struct RunOptions {
  std::string folder = {};                            ///< working folder; "": the current one
  std::function<void()> prepare = {};                 ///< in the child, before it becomes the program
  std::function<void(pid_t program)> meanwhile = {};  ///< in the parent, while it runs
  std::string program = {};                           ///< "": perseus; else another program of the same build
};

Outcome run_perseus(const std::vector<std::string>& arguments, const RunOptions& options = {});
/// The arguments as in a shell: separated by spaces, which 'quotes' keep within an argument.
Outcome run_perseus_line(std::string_view arguments, const RunOptions& options = {});

std::string content_of(const std::filesystem::path& path);
std::vector<std::string> lines_of(const std::string& text);

/// The project's own sample profile.
std::string sample_profile();
/// The path of that profile with 2 % of noise on every time and energy, always the same.
std::string noisy_sample(const ScratchFolder& scratch);

}  // namespace perseus::testing
