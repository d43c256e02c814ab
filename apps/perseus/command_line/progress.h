// Progress and remaining time of a long computation: one line on standard error that overwrites itself, removed at
// the end.
//
// Shown where standard error is a terminal and `--no-progress` was not given, or always with `--progress`; not before
// the work has taken half a second. Where standard error is no terminal and neither was given, a log gets a line
// after ten seconds, and then every half minute.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace perseus::cli {

class ProgressLine {
 public:
  /// `wanted`: the user's choice; nullopt: a terminal gets the line and a log gets lines.
  /// `advice`: printed once, if the rest takes minutes.
  ProgressLine(std::string what, std::optional<bool> wanted, std::string advice = {});
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// To pass to a planner; empty if no progress is shown.
  [[nodiscard]] std::function<void(double done)> callback();

 private:
  void show(double done);
  void advise(double left_s);
  std::string what_, advice_;
  enum class Form { none, one_line, log } form_;
  std::chrono::steady_clock::time_point began_, next_;
  bool shown_ = false;
};

CLI::Option* add_progress_flag(CLI::App& subcommand, std::optional<bool>& wanted);

}  // namespace perseus::cli
