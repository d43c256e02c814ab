#include "command_line/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "base/standard_streams.h"
#include "command_line/command.h"
#include "command_line/terminal_size.h"

namespace perseus::cli {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kQuietAtFirst = 500ms;
constexpr auto kBetweenUpdates = 100ms;
constexpr auto kQuietInLog = 10s;
constexpr auto kBetweenLogLines = 30s;
constexpr double kTold = 0.02;  ///< share done from which the remaining time is known

constexpr double kLong_s = 120;  ///< remaining time from which advice is printed

std::string rest_text(double s) {
  constexpr double minute = 60, hour = 3600;
  if (s < 2 * minute) return fmt::format("{:.0f} s", std::ceil(s));
  if (s < 2 * hour) return fmt::format("{:.0f} min", std::ceil(s / minute));
  return fmt::format("{:.1f} h", s / hour);
}

}  // namespace

ProgressLine::ProgressLine(std::string what, std::optional<bool> wanted, std::string advice)
    : what_(std::move(what)),
      advice_(std::move(advice)),
      form_(!wanted.value_or(true)                   ? Form::none
            : wanted || ::isatty(STDERR_FILENO) == 1 ? Form::one_line
                                                     : Form::log),
      began_(SteadyClock::now()),
      next_(began_ + (form_ == Form::log ? SteadyClock::duration(kQuietInLog) : kQuietAtFirst)) {}

ProgressLine::~ProgressLine() {
  if (shown_) clear_progress_line();
}

std::function<void(double)> ProgressLine::callback() {
  if (form_ == Form::none) return {};
  return [this](double done) { show(done); };
}

void ProgressLine::advise(double left_s) {
  if (advice_.empty() || left_s < kLong_s) return;
  if (shown_) clear_progress_line();
  note(fmt::format("{} takes about {} more; {}", what_, rest_text(left_s), std::exchange(advice_, {})));
}

void ProgressLine::show(double done) {
  const auto now = SteadyClock::now();
  if (now < next_) return;
  next_ = now + (form_ == Form::log ? SteadyClock::duration(kBetweenLogLines) : kBetweenUpdates);
  std::string left;  // remaining time at the rate so far
  if (done >= kTold) {
    const double so_far_s = std::chrono::duration<double>(now - began_).count();
    const double left_s = so_far_s * (1 - done) / done;
    left = fmt::format(", {} left", rest_text(left_s));
    advise(left_s);
  }
  if (form_ == Form::log) {
    write_error(fmt::format("perseus: {}: {:.0f} %{}\n", what_, 100 * done, left));
    return;
  }
  shown_ = true;
  show_progress_line(fmt::format("{} {:3.0f} %{}", what_, 100 * done, left));
}

CLI::Option* add_progress_flag(CLI::App& subcommand, std::optional<bool>& wanted) {
  // Not bound to the variable: CLI11 would set it to false where the flag is absent.
  return subcommand.add_flag_function(
      "--progress,!--no-progress", [&wanted](std::int64_t count) { wanted = count > 0; },
      "Print progress to standard error, on one line (default: if it is a terminal; elsewhere a line every 30 s, after "
      "the first 10 s)");
}

}  // namespace perseus::cli
