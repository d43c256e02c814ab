// What a terminal shows: progress on one line, and no control characters from files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/utf8.h"
#include "program.h"
#include "tests/support/signal_process.h"

namespace perseus::testing {
namespace {

using ::testing::HasSubstr;

/// A terminal of that many columns as the program's standard error.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    PERSEUS_CHECK(master_ >= 0 && ::grantpt(master_) == 0 && ::unlockpt(master_) == 0, "a pseudo-terminal");
    const winsize size{24, columns, 0, 0};
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    PERSEUS_CHECK(slave_ >= 0 && ::ioctl(slave_, TIOCSWINSZ, &size) == 0, "its size");
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() { ::close(master_); }

  /// Ends the program once the terminal has shown `text` so many times.
  RunOptions until(const std::string& text, int times) {
    return {.prepare = [this] { ::dup2(slave_, STDERR_FILENO); },
            .meanwhile =
                [this, text, times](pid_t program) {
                  ::close(slave_);
                  std::array<char, 4096> piece{};
                  for (ssize_t n = 1; n > 0 && count(text) < times;) {
                    n = ::read(master_, piece.data(), piece.size());
                    if (n > 0) shown_.append(piece.data(), static_cast<std::size_t>(n));
                  }
                  testing::signal_process(program, SIGKILL);
                }};
  }
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  [[nodiscard]] int count(const std::string& text) const {
    int found = 0;
    for (auto at = shown_.find(text); at != std::string::npos; at = shown_.find(text, at + 1)) ++found;
    return found;
  }
  int master_, slave_;
  std::string shown_;
};

constexpr std::string_view kEraseRest = "\x1b[K";

/// Runs the program until it has drawn its progress three times, and checks that each drawing fits into one line.
void expect_progress_on_one_line(const std::vector<std::string>& arguments, const std::string& begins_with) {
  constexpr std::size_t columns = 24;
  Terminal terminal(columns);
  run_perseus(arguments, terminal.until(std::string(kEraseRest), 3));
  const std::string& shown = terminal.shown();
  EXPECT_THAT(shown, ::testing::HasSubstr("\r" + begins_with));
  std::size_t longest = 0;
  for (std::size_t ends = shown.find(kEraseRest); ends != std::string::npos; ends = shown.find(kEraseRest, ends + 1)) {
    const std::size_t begins = shown.rfind('\r', ends) + 1;
    longest = std::max(longest, display_columns(shown.substr(begins, ends - begins)));
  }
  EXPECT_GT(longest, 10u);
  EXPECT_LT(longest, columns) << shown;
}

// Each takes minutes.
TEST(TerminalProgress, OfPlanStaysOnOneLine) {
  expect_progress_on_one_line(
      {"plan", sample_profile(), "--schedule", "1f1b", "--blocking-power", "90", "-m", "1024", "--method", "perseus"},
      "planning");
}

TEST(TerminalProgress, OfPartitionStaysOnOneLine) {
  expect_progress_on_one_line({"partition", "--model", "gpt3-175b", "--gpu", "A100-SXM", "--stages", "8", "-m", "64",
                               "--objective", "energy", "--deadline", "900"},
                              "planning partitions");
}

TEST(TerminalProgress, OfVerifyStaysOnOneLine) {
  const ScratchFolder scratch;
  const std::vector<std::string> plan{
      "plan", sample_profile(), "--schedule",         "1f1b", "--blocking-power", "90", "-m",
      "96",   "--out",          scratch.path("plans")};
  ASSERT_EQ(run_perseus(plan).exit_code, 0);
  expect_progress_on_one_line({"verify", scratch.path("plans")}, "verifying");
}

TEST(TerminalProgress, OfDemoStaysOnOneLine) {
  const ScratchFolder scratch;
  expect_progress_on_one_line({"demo", "--known-profile", "--dp", "1", "--time-scale", "0.2", "--out",
                               scratch.path("out"), "--scratch", scratch.path("work")},
                              "          iteration");
}

TEST(TerminalOutput, HelpIsAsWideAsTheTerminal) {
  constexpr std::size_t columns = 110;
  Terminal terminal(columns);
  RunOptions options = terminal.until("nothing: the program ends by itself", 1);
  options.prepare = [&, before = options.prepare] {
    before();
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  };
  run_perseus({"serve", "--help"}, options);
  std::size_t longest = 0;
  for (const std::string& line : lines_of(terminal.shown()))
    longest = std::max(longest, line.find_last_not_of('\r') + 1);
  EXPECT_GT(longest, 100u);
  EXPECT_LE(longest, columns);
}

/// Lines of the tables that the program shows on a terminal of 80 columns.
std::vector<std::string> table_lines(const std::vector<std::string>& arguments) {
  Terminal terminal(80);
  RunOptions options = terminal.until("nothing: the program ends by itself", 1);
  options.prepare = [before = options.prepare] {
    before();
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  };
  run_perseus(arguments, options);
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(terminal.shown())) {
    const std::string text = line.substr(0, line.find_last_not_of('\r') + 1);
    if (text.find("  ") != std::string::npos) lines.push_back(text);
  }
  return lines;
}

TEST(TerminalOutput, TablesFitTheTerminal) {
  const std::vector<std::string> plan{sample_profile(),   "--schedule", "1f1b",          "-m",       "4",
                                      "--blocking-power", "90",         "--no-progress", "--effort", "low"};
  std::vector<std::string> compare{"compare"}, points{"plan"};
  compare.insert(compare.end(), plan.begin(), plan.end());
  compare.insert(compare.end(), {"--methods", "exact,envpipe,zeus-global,all-max"});
  points.insert(points.end(), plan.begin(), plan.end());
  for (const auto& arguments : {compare, points}) {
    const std::vector<std::string> lines = table_lines(arguments);
    EXPECT_GT(lines.size(), 8u);
    for (const std::string& line : lines) EXPECT_LE(display_columns(line), 80u) << line;
  }
  const Outcome piped = run_perseus(compare);
  EXPECT_THAT(piped.out, HasSubstr("gap   slowest    energy")) << "a file has no width";
}

TEST(TerminalOutput, HasNoControlCharactersFromFiles) {
  const ScratchFolder scratch;
  const std::string name = scratch.file("a\x1b[31mb\xe2\x80\xae.csv", content_of(sample_profile()));
  const std::vector<std::string> plan{"plan", name, "--blocking-power", "90", "--deadlines", "2"};
  for (const bool json : {false, true}) {
    std::vector<std::string> words = plan;
    if (json) words.emplace_back("--json");
    const Outcome outcome = run_perseus(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string name_shown = outcome.out.substr(0, outcome.out.find("schedule"));
    EXPECT_THAT(name_shown, HasSubstr(json ? "a\\u001b[31mb\\u202e.csv" : "a\\x1b[31mb\\u202e.csv"));
    for (const std::string raw : {"\x1b", "\xe2\x80\xae"}) {
      EXPECT_EQ((outcome.out + outcome.err).find(raw), std::string::npos) << name_shown;
    }
  }
}

}  // namespace
}  // namespace perseus::testing
