#include "server/openadr/event_reporter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "io/formats/json_reader.h"

namespace perseus::openadr {
namespace {

constexpr double kStart_s = 1'800'000'000, kMinutes15_s = 900;

/// A server that keeps reports; it may refuse, and lose its answers.
class KeptReports final : public ReportReceiver {
 public:
  Result<std::vector<StoredReport>> reports(const std::string& event, const std::string&) override {
    ++calls;
    if (fails || event == refused) return Error{ErrorCode::unavailable, "GET /reports: no answer"};
    return kept[event];
  }
  Status create(const std::string& report) override {
    const auto read = parse_reports(R"([{"id":"new",)" + report.substr(1) + "]", "report");
    const auto document = formats::parse_json(report, "report");
    EXPECT_TRUE(read && read->size() == 1 && document);
    auto& reports = kept[std::string(formats::JsonFields(document->root()).string("eventID"))];
    reports.push_back(read->front());
    if (loses_answers) return Error{ErrorCode::unavailable, "POST /reports: no answer"};
    return Ok{};
  }
  Status replace(const std::string&, const std::string&) override { return Ok{}; }

  std::map<std::string, std::vector<StoredReport>> kept;
  std::string refused;  ///< an event
  bool fails = false, loses_answers = false;
  int calls = 0;
};

class EventReporterTest : public ::testing::Test, protected ReporterHost {
 protected:
  EventReporterTest() {
    clock_.turn_to(kStart_s);
    start();
  }
  void start() {
    ReporterParts parts;
    parts.receiver = &server_;
    parts.host = this;
    parts.unstepped = &clock_;
    reporter_.emplace(ReporterOptions{{"ven", "hall"}, "seed", {}}, parts);
  }
  Result<std::vector<DrawnStep>> powers(double from_s, double to_s) override {
    return std::vector<DrawnStep>{{from_s, to_s, Watts(1000), true}};
  }
  void log(const std::string& line) override { log_.push_back(line); }
  /// Quarters of an hour without end, each with a report.
  void ask(const std::string& id) {
    SeenEvent seen;
    seen.event.id = id;
    seen.event.period.has_start = true;
    seen.event.period.start_s = kStart_s;
    seen.event.period.duration = IsoDuration{0, kMinutes15_s};
    ReportRequest request;
    request.payload_type = "DEMAND";
    request.start_interval = 0;
    request.num_intervals = 1;
    request.repeat = -1;
    seen.event.reports.push_back(request);
    events_.push_back(seen);
  }
  void poll_until(double time_s) {
    for (double now_s = clock_.now_s(); now_s <= time_s; now_s += 45) {
      clock_.turn_to(now_s);
      reporter_->report(events_, now_s);
    }
    clock_.turn_to(time_s);
  }
  /// Beginnings in quarters of an hour.
  std::vector<int> reported(const std::string& id) {
    std::vector<int> quarters;
    for (const StoredReport& report : server_.kept[id]) {
      quarters.push_back(static_cast<int>((report.intervals.at(0).from_s - kStart_s) / kMinutes15_s));
    }
    return quarters;
  }

  [[nodiscard]] std::ptrdiff_t lines_with(const std::string& text) const {
    return std::count_if(log_.begin(), log_.end(),
                         [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  HandTurnedClock clock_;
  KeptReports server_;
  std::vector<SeenEvent> events_;
  std::vector<std::string> log_;
  std::optional<EventReporter> reporter_;
};

TEST_F(EventReporterTest, ReportsEachIntervalOnceItIsKnown) {
  ask("a");
  poll_until(kStart_s + kMinutes15_s);
  EXPECT_EQ(server_.calls, 0);
  poll_until(kStart_s + 4 * kMinutes15_s);
  EXPECT_EQ(reported("a"), (std::vector{0, 1, 2}));
  EXPECT_EQ(server_.calls, 3);
}

TEST_F(EventReporterTest, SendsWhatWasMissedInOrderAndSaysFailuresOnce) {
  ask("a");
  poll_until(kStart_s + 1.5 * kMinutes15_s);
  server_.fails = true;
  poll_until(kStart_s + 9 * kMinutes15_s);
  EXPECT_LT(server_.calls, 12);  // it waits longer and longer
  server_.fails = false;
  poll_until(kStart_s + 14 * kMinutes15_s);
  EXPECT_EQ(reported("a"), (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(lines_with("no answer; "), 1);
  EXPECT_EQ(lines_with("taken again"), 1);
}

TEST_F(EventReporterTest, ALostAnswerAndARestartReportNothingTwice) {
  ask("a");
  server_.loses_answers = true;
  poll_until(kStart_s + 1.5 * kMinutes15_s);
  start();
  poll_until(kStart_s + 1.9 * kMinutes15_s);
  EXPECT_EQ(reported("a"), std::vector{0});
}

TEST_F(EventReporterTest, MakesNoCallAfterOneThatFails) {
  for (const char* id : {"a", "b", "c"}) ask(id);
  server_.fails = true;
  clock_.turn_to(kStart_s + 1.5 * kMinutes15_s);
  reporter_->report(events_, clock_.now_s());
  EXPECT_EQ(server_.calls, 1);
  reporter_->report(events_, clock_.now_s());
  EXPECT_EQ(server_.calls, 2);  // of the next event
  server_.fails = false;
  poll_until(clock_.now_s() + 100);
  for (const char* id : {"a", "b", "c"}) EXPECT_EQ(reported(id), std::vector{0}) << id;
}

TEST_F(EventReporterTest, AnEventWhoseReportsAreRefusedKeepsNoOtherFromBeingReported) {
  for (const char* id : {"a", "b"}) ask(id);
  server_.refused = "a";
  poll_until(kStart_s + 4 * kMinutes15_s);
  EXPECT_EQ(reported("a"), std::vector<int>{});
  EXPECT_EQ(reported("b"), (std::vector{0, 1, 2}));
}

}  // namespace
}  // namespace perseus::openadr
