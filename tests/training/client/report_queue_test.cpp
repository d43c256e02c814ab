// Reports: whole profiling windows, iterations of one plan version, nothing twice and nothing out of order.
#include "training/client/report_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace perseus::client {
namespace {

MeasuredIteration iteration(std::int64_t number, std::int64_t version, int window = -1, bool ends_window = false) {
  MeasuredIteration measured;
  measured.iteration = number;
  measured.plan_version = version;
  measured.window = window;
  measured.ends_window = ends_window;
  return measured;
}

/// Numbers of the iterations of a report: "3 4 5".
std::string numbers(const std::vector<MeasuredIteration>& report) {
  std::string text;
  for (const MeasuredIteration& measured : report) {
    text += (text.empty() ? "" : " ") + std::to_string(measured.iteration);
  }
  return text;
}

TEST(ReportQueueTest, IterationsOfAVersionWaitForAnotherVersionOrForTheEnd) {
  ReportQueue queue;
  queue.add(iteration(1, 7));
  queue.add(iteration(2, 7));
  EXPECT_EQ(numbers(queue.next(false)), "");
  queue.add(iteration(3, 8));
  EXPECT_EQ(numbers(queue.next(false)), "1 2");
  EXPECT_EQ(numbers(queue.next(false)), "");
  EXPECT_EQ(numbers(queue.next(true)), "3");
  EXPECT_EQ(numbers(queue.next(true)), "");
}

TEST(ReportQueueTest, AWindowIsReportedOnceItIsWhole) {
  ReportQueue queue;
  queue.add(iteration(1, 7, 4));
  EXPECT_EQ(numbers(queue.next(true)), "");
  queue.add(iteration(2, 7, 4, true));
  queue.add(iteration(3, 7));
  EXPECT_EQ(numbers(queue.next(false)), "1 2");
  EXPECT_EQ(numbers(queue.next(true)), "3");
}

TEST(ReportQueueTest, HalfAWindowThatAnotherPlanEndedIsDropped) {
  ReportQueue queue;
  queue.add(iteration(1, 7, 4));
  queue.add(iteration(2, 7, 4));
  queue.add(iteration(3, 8, 5));
  queue.add(iteration(4, 8, 5, true));
  EXPECT_EQ(numbers(queue.next(false)), "3 4");
  EXPECT_EQ(numbers(queue.next(true)), "");
}

TEST(ReportQueueTest, TheNewestThousandIterationsAreKept) {
  ReportQueue queue;
  for (std::int64_t number = 0; number < 1005; ++number) queue.add(iteration(number, 7));
  const std::vector<MeasuredIteration> report = queue.next(true);
  ASSERT_EQ(report.size(), 1000U);
  EXPECT_EQ(report.front().iteration, 5);
  EXPECT_EQ(report.back().iteration, 1004);
}

TEST(ReportQueueTest, ClearedItHasNothing) {
  ReportQueue queue;
  queue.add(iteration(1, 7));
  queue.clear();
  EXPECT_TRUE(queue.next(true).empty());
}

}  // namespace
}  // namespace perseus::client
