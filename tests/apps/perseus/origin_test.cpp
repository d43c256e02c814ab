// What results say about their origin: hashes of the inputs and the command line.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>

#include "program.h"

namespace perseus::testing {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

/// What a shell prints for that command.
std::string shell(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    text.append(buffer.data(), got);
  }
  return text;
}

std::string sha256sum_of(const std::string& file) { return shell("sha256sum < '" + file + "'").substr(0, 64); }

std::vector<std::string> words_to_plan(const std::string& profile, const std::string& out) {
  return {"plan", profile, "--blocking-power", "90", "-m", "2", "--effort", "low", "--out", out};
}

/// A member of plans.json's metadata.
std::string metadata(const std::string& out, const std::string& name) {
  return json::parse(content_of(out + "/plans.json")).at("metadata").at(name).as_string().c_str();
}

/// A program that waits for input that never comes ends by this signal.
void end_if_it_hangs() { ::alarm(120); }

TEST(Origin, HashesAPipeThatCanBeReadOnce) {
  const ScratchFolder scratch;
  const std::string fifo = scratch.path("profile");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto feed = [&](pid_t) {
    const std::string text = content_of(sample_profile());
    const int end = ::open(fifo.c_str(), O_WRONLY);
    EXPECT_EQ(::write(end, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(end);
  };
  const Outcome planned =
      run_perseus(words_to_plan(fifo, scratch.path("out")), {.prepare = end_if_it_hangs, .meanwhile = feed});
  ASSERT_EQ(planned.exit_code, 0) << planned.signal << planned.err;
  EXPECT_EQ(metadata(scratch.path("out"), "SHA-256 of profile"), sha256sum_of(sample_profile()));
}

TEST(Origin, HashesStandardInput) {
  const ScratchFolder scratch;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const auto feed = [&](pid_t) {
    ::close(ends[0]);
    const std::string text = content_of(sample_profile());
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
  };
  const auto read_it = [&] {
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
  };
  const Outcome planned =
      run_perseus(words_to_plan("/dev/stdin", scratch.path("out")), {.prepare = read_it, .meanwhile = feed});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_EQ(metadata(scratch.path("out"), "SHA-256 of stdin"), sha256sum_of(sample_profile()));
}

TEST(Origin, HashesEveryFileAsItLies) {
  const ScratchFolder scratch;
  const std::string compressed = scratch.path("profile.csv.gz"), out = scratch.path("out");
  shell("gzip -c '" + sample_profile() + "' > '" + compressed + "'");
  ASSERT_EQ(run_perseus(words_to_plan(compressed, out)).exit_code, 0);
  EXPECT_EQ(metadata(out, "SHA-256 of profile.csv.gz"), sha256sum_of(compressed));

  const std::string scenario = PERSEUS_SOURCE_DIR "/data/sample_scenario.toml";
  ASSERT_EQ(run_perseus({"emulate", scenario, "--methods", "exact", "--out", scratch.path("emulated")}).exit_code, 0);
  const std::string page = content_of(scratch.path("emulated/emulation.html"));
  EXPECT_THAT(page, HasSubstr(sha256sum_of(scenario)));
  EXPECT_THAT(page, HasSubstr(sha256sum_of(sample_profile())));
}

TEST(Origin, OfASearchIsOnItsPage) {
  const ScratchFolder scratch;
  std::vector<std::string> words = words_to_plan(sample_profile(), scratch.path("out"));
  words.insert(words.end(), {"--schedule", "1f1b,gpipe"});
  ASSERT_EQ(run_perseus(words).exit_code, 0);
  const std::string page = content_of(scratch.path("out/configurations.html"));
  EXPECT_THAT(page, HasSubstr(sha256sum_of(sample_profile())));
  EXPECT_THAT(page, HasSubstr("--schedule 1f1b,gpipe"));
}

TEST(Origin, AShellReadsTheCommandLineBack) {
  const ScratchFolder scratch;
  const std::string out = scratch.path("it's \"one\" $folder\\");
  ASSERT_EQ(run_perseus(words_to_plan(sample_profile(), out)).exit_code, 0);
  const std::string command = metadata(out, "command");
  std::string words;
  for (const std::string& word : words_to_plan(sample_profile(), out)) words += word + "\n";
  EXPECT_EQ(shell("set -- " + command + "; shift; printf '%s\\n' \"$@\""), words);
}

}  // namespace
}  // namespace perseus::testing
