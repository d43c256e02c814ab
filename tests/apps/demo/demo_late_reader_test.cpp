// `perseus demo` measures a straggler from its cap on, also if it did not run while iterations before it ended.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "tests/apps/perseus/program.h"
#include "tests/support/signal_process.h"

namespace perseus::testing {
namespace {

using ::testing::ContainsRegex;

TEST(DemoOfALateReader, MeasuresTheStragglerFromItsCapOn) {
  const ScratchFolder scratch;
  const auto err = [&] { return content_of(scratch.path("err")); };
  std::ofstream(scratch.path("err"));  // so that it can be read from now on
  RunOptions options;
  options.prepare = [&] {
    ::setenv("PERSEUS_PLAN_TOLERANCE", "-1", 1);  // iterations of 0.2 s on a busy machine
    if (::dup2(::open(scratch.path("err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO) < 0) ::_exit(126);
  };
  options.meanwhile = [&](pid_t demo) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (err().find("the plan is in force") == std::string::npos && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    testing::signal_process(demo, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::seconds(4));  // more iterations than are measured before the notice
    testing::signal_process(demo, SIGCONT);
  };
  const Outcome outcome = run_perseus({"demo", "--known-profile", "--json", "--iterations", "2", "--time-scale", "0.2",
                                       "--out", scratch.path("out"), "--scratch", scratch.path("work")},
                                      options);
  EXPECT_EQ(outcome.exit_code, 0) << err();
  EXPECT_THAT(err(), ContainsRegex("notice to the server: 1\\.[1-9]"));
}

}  // namespace
}  // namespace perseus::testing
