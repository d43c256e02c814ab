// Profiling windows of one job: handed out one after the other, by one server, and their reports.
#include "server/plans/profiling_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::plans {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ProfilingWindowsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  ProfilingWindowsTest() {
    jobs::JobRegistered online;
    online.profile_online = true;
    online.shape = jobs::PipelineShape{};
    online.shape->microbatches = 2;
    base.create("job", 2, online);
    base.hooks.on_committed = [](live::LiveJob& live, const std::vector<live::SequencedEvent>& events) {
      for (const live::SequencedEvent& event : events) {
        if (live.profiling) live.profiling->take(live.job, event.sequence, event.event);
      }
    };
    base.append("job", {jobs::ProfilingStarted{{0}, {{1400, 700}, {1400, 700}}}});
  }
  void go_on() {
    windows->go_on(live());
    base.settle();
  }
  Result<jobs::ReportedIterations> report(int rank, int window, const std::string& missed = "") {
    jobs::ReportIterations request;
    request.job = "job";
    request.rank = rank;
    request.missed = missed;
    if (missed.empty()) {
      request.iteration_time = {Seconds(0.9)};
      request.iteration_energy = {Joules(300)};
      request.time_s = {{"forward", {{0.1, 0.1}}}, {"backward", {{0.2, 0.2}}}};
      request.energy_j = {{"forward", {{40, 40}}}, {"backward", {{80, 80}}}};
    }
    return send(window, request);
  }
  Result<jobs::ReportedIterations> send(int window, const jobs::ReportIterations& request) {
    return answer_of<jobs::ReportedIterations>(
        [&](auto done) { windows->report(live(), window, request, std::move(done)); });
  }
  std::size_t handed_out() { return job().windows.size(); }
};

TEST_F(ProfilingWindowsTest, TheNextWindowFollowsOnceAllRanksHaveReported) {
  windows->go_on(live());
  windows->go_on(live());
  base.settle();
  ASSERT_EQ(handed_out(), 1U);
  EXPECT_THAT(report(0, 0)->rejected, IsEmpty());
  go_on();
  EXPECT_EQ(handed_out(), 1U);
  EXPECT_THAT(report(1, 0)->rejected, IsEmpty());
  go_on();
  EXPECT_EQ(handed_out(), 2U);
}

TEST_F(ProfilingWindowsTest, ARepeatedOrLateReportChangesNothing) {
  go_on();
  ASSERT_TRUE(report(0, 0).ok());
  const std::int64_t committed = live().committed;
  EXPECT_TRUE(report(0, 0).ok());
  EXPECT_EQ(live().committed, committed);
  ASSERT_TRUE(report(1, 0).ok());
  go_on();
  EXPECT_THAT(report(0, 0)->rejected, ElementsAre("window 0 is over: window 1 runs now"));
}

TEST_F(ProfilingWindowsTest, AReportOfAWindowThatWasNotHandedOutIsRejected) {
  go_on();
  EXPECT_EQ(report(0, 1).error().message, "window: 1; 1 were handed out, from 0");
  EXPECT_EQ(report(0, -1).error().code, ErrorCode::usage);
  EXPECT_EQ(report(0, 0, "no\ncounter").error().code, ErrorCode::usage);
  jobs::ReportIterations impossible;
  impossible.iteration_time = {Seconds(0.9)};
  impossible.iteration_energy = {Joules(200)};
  impossible.time_s = {{"forward", {{0.1}, {0.1}, {0.1}}}};
  EXPECT_THAT(send(0, impossible).error().message, HasSubstr("time_breakdown lacks backward"));
  EXPECT_THAT(job().results, IsEmpty());
}

TEST_F(ProfilingWindowsTest, ARankWithoutEnergiesEndsProfiling) {
  go_on();
  jobs::ReportIterations request;
  request.iteration_time = {Seconds(0.9)};
  request.time_s = {{"forward", {{0.1, 0.1}}}};
  ASSERT_TRUE(send(0, request).ok());
  EXPECT_TRUE(job().unprofiled);
  EXPECT_THAT(job().reason, HasSubstr("rank 0 measures no energies"));
  EXPECT_THAT(send(0, request)->rejected, ElementsAre("window 0: the job is not being profiled"));
}

TEST_F(ProfilingWindowsTest, AWindowWithoutAllReportsEndsAfterItsTime) {
  go_on();
  ASSERT_TRUE(report(0, 0).ok());
  base.clock().advance(options.profiling_window_s - 1);
  go_on();
  EXPECT_EQ(handed_out(), 1U);
  base.clock().advance(1);
  go_on();
  ASSERT_THAT(job().windows, SizeIs(2));
  EXPECT_EQ(job().windows[1].overdue, "1 of 2 ranks (1) have not reported profiling window 0 in 600 s");
}

TEST_F(ProfilingWindowsTest, AfterTheStopNoSearchBegins) {
  windows->stop();
  go_on();
  EXPECT_EQ(handed_out(), 0U);
}

TEST_F(ProfilingWindowsTest, AReportWithoutANumberIsOfTheWindowThatTheRankGot) {
  jobs::ReportIterations request;
  EXPECT_EQ(ProfilingWindows::window_of(live(), request), std::nullopt);
  go_on();
  EXPECT_EQ(ProfilingWindows::window_of(live(), request), std::nullopt) << "no instructions: plain iterations";
  request.time_s = {{"forward", {{0.1}}}};
  EXPECT_EQ(ProfilingWindows::window_of(live(), request), 0);
  live().windows.hand_out(0, 5);
  EXPECT_EQ(ProfilingWindows::window_of(live(), request), 5);
  request.window = 3;
  EXPECT_EQ(ProfilingWindows::window_of(live(), request), 3);
}

}  // namespace
}  // namespace perseus::plans
