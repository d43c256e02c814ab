#include "server/openadr/report_series.h"

#include <gtest/gtest.h>

#include "server/openadr/report_text.h"

namespace perseus::openadr {
namespace {

constexpr double kBegin_s = 1'800'000'000, kHour_s = 3600;

GridEvent hours(int count) {
  GridEvent event;
  event.id = "e";
  event.period.has_start = true;
  event.period.start_s = kBegin_s;
  event.period.duration = IsoDuration{0, kHour_s};
  for (int k = 0; k < count; ++k) event.intervals.push_back({100 + k, {}, {}});
  return event;
}

Result<ReportSeries> series_of(const GridEvent& event, const ReportRequest& request) {
  return ReportSeries::of(event, *place_intervals(event, kBegin_s, [](std::size_t) { return 0; }), kBegin_s, request);
}

/// "0-3 at 4h, ...": the reports that are due within a time, by hours since the beginning.
std::string reports_of(const GridEvent& event, const ReportRequest& request, double within_h = 1000) {
  const auto series = series_of(event, request);
  if (!series) return series.error().message;
  std::string text;
  const auto last = series->last_due(kBegin_s + within_h * kHour_s);
  for (std::int64_t number = 0; last && number <= *last; ++number) {
    const auto intervals = series->intervals(number);
    const auto hour = [](double time_s) { return std::to_string(static_cast<int>((time_s - kBegin_s) / kHour_s)); };
    text += (text.empty() ? "" : ", ") + hour(intervals.front().from_s) + "-" + hour(intervals.back().to_s);
    EXPECT_EQ(series->last_due(intervals.back().to_s), number);
    EXPECT_NE(series->last_due(intervals.back().to_s - 1), number);
  }
  return text;
}

ReportRequest asked(int start, int count, int frequency = -1, int repeat = 1) {
  ReportRequest request;
  request.payload_type = "USAGE";
  request.start_interval = start;
  request.num_intervals = count;
  request.frequency = frequency;
  request.repeat = repeat;
  return request;
}

TEST(ReportSeries, HasTheReportsOfTheUserGuide) {
  EXPECT_EQ(reports_of(hours(4), {}), "0-4");
  EXPECT_EQ(reports_of(hours(4), {}, 3.9), "");
  EXPECT_EQ(reports_of(hours(5), asked(1, 3)), "1-4");                  // a subset
  EXPECT_EQ(reports_of(hours(10), asked(5, -1)), "5-10");               // the last five
  EXPECT_EQ(reports_of(hours(6), asked(1, 2, 2, 3)), "0-2, 2-4, 4-6");  // at a regular period
  EXPECT_EQ(reports_of(hours(10), asked(0, 2, 2, -1)), "0-2, 2-4, 4-6, 6-8, 8-10");
  EXPECT_EQ(reports_of(hours(5), asked(0, 3, 1, 3)), "0-3, 1-4, 2-5");  // rolling
  EXPECT_EQ(reports_of(hours(4), asked(-1, 2, 0)), "2-4");              // when the client chooses
}

TEST(ReportSeries, RepeatsWithItsEvent) {
  GridEvent loop = hours(2);
  loop.duration = IsoDuration{0, 0, true};
  EXPECT_EQ(reports_of(loop, asked(-1, -1, -1, -1), 7), "0-2, 2-4, 4-6");
  EXPECT_EQ(reports_of(loop, asked(-1, -1), 7), "0-2");
  loop.duration = IsoDuration{0, 5 * kHour_s};
  EXPECT_EQ(reports_of(loop, asked(-1, 1, -1, -1)), "1-2, 2-3, 3-4, 4-5");
  const auto series = series_of(loop, asked(0, 1, 1, -1));
  EXPECT_EQ(series->intervals(4), (std::vector<ReportInterval>{{100, kBegin_s + 4 * kHour_s, kBegin_s + 5 * kHour_s}}));
}

TEST(ReportSeries, HasImpliedIntervals) {
  EXPECT_EQ(reports_of(hours(0), asked(0, 1, 1, -1), 3.5), "0-1, 1-2, 2-3");
  EXPECT_EQ(series_of(hours(0), asked(0, 1, 1, -1))->intervals(2).front().id, 2);
  EXPECT_EQ(series_of(hours(0), asked(0, 1, 1, -1))->last_due(kBegin_s + 1e6 * kHour_s), 999'999);
}

TEST(ReportSeries, SaysWhatIsNotReported) {
  GridEvent bare = hours(0);
  bare.period.duration.reset();
  EXPECT_EQ(reports_of(bare, {}), "the event has no intervals and no duration");
  ReportRequest forecast;
  forecast.historical = false;
  EXPECT_EQ(reports_of(hours(4), forecast), "it is about the future; allowed: historical reports");
  EXPECT_EQ(reports_of(hours(4), asked(4, -1)), "it has no interval of the event");
  EXPECT_EQ(reports_of(hours(4), asked(7, 2)), "it has no interval of the event");
  EXPECT_EQ(reports_of(hours(3000), {}), "it has 3000 intervals; allowed: 2000");
}

TEST(ReportText, WeighsPowersByTime) {
  ReportRequest request;
  request.payload_type = "DEMAND";
  request.units = "W";
  request.aggregate = true;
  // A minute of which the interval has the second half, and a gap.
  const std::vector<DrawnStep> steps{{0, 60, Watts(100), true}, {60, 120, Watts(400), false}};
  EXPECT_EQ(report_json("e", request, {{3, 30, 150}}, steps, {"ven", "hall"}),
            R"({"eventID":"e","clientName":"ven","reportName":"perseus DEMAND hall 1970-01-01T00:00:30Z 1",)"
            R"("payloadDescriptors":[{"objectType":"REPORT_PAYLOAD_DESCRIPTOR","payloadType":"DEMAND",)"
            R"("readingType":"ESTIMATED","units":"W"}],"resources":[{"resourceName":"AGGREGATED_REPORT","intervals":)"
            R"([{"id":3,"intervalPeriod":{"start":"1970-01-01T00:00:30Z","duration":"PT120S"},"payloads":)"
            R"([{"type":"DEMAND","values":[300]},{"type":"DATA_QUALITY","values":["ESTIMATED"]}]}]}]})");
}

TEST(ReportText, ReadsItsOwnReports) {
  const std::vector<ReportInterval> intervals{{3, 1'800'000'000, 1'800'003'600}, {4, 1'800'003'600, 1'800'007'200}};
  ReportRequest request;
  request.payload_type = "USAGE";
  std::string text = report_json("e", request, intervals, {}, {"ven", "hall"});
  text.insert(1, R"("id":"r1",)");
  const auto reports = parse_reports("[" + text + R"(,{"id":7},{"id":"other","resources":[]}])", "list");
  ASSERT_TRUE(reports && reports->size() == 2);
  EXPECT_EQ(reports->at(0).id, "r1");
  EXPECT_EQ(reports->at(0).name, report_name(request, intervals, {"ven", "hall"}));
  EXPECT_EQ(reports->at(0).intervals, intervals);
  EXPECT_EQ(reports->at(1).id, "other");
}

}  // namespace
}  // namespace perseus::openadr
