// Which reports one descriptor of an event asks for, and which intervals each of them has.
//
// Problem: a descriptor counts in intervals of its event, which may repeat without end, and the specification's text
//          and examples of startInterval contradict each other.
// Method:  report k has the intervals from first + k * frequency on, num_intervals of them, and is due at the end of
//          the last one. startInterval -1: the last num_intervals of the event. Otherwise startInterval is the first
//          one, unless all reports together then exceed the event: then it is the last one of the first report. All
//          examples of the User Guide with past intervals fit.
// Input:   an event, its intervals in time, and one of its descriptors. An event without intervals, but with a
//          duration of them, has implied ones without end, or until its own duration ends.
// Output:  reports by number, from 0; their intervals in order of time, with the event's ids; implied intervals have
//          their number.
// Errors:  invalid_input with the reason: a report of the future, no intervals, more than kMostReportIntervals.
// Cost:    O(log) for the last due one, O(num_intervals) per report.
// Threads: values.
// Source:  OpenADR 3.1.0, schema reportDescriptor; User Guide, section 7.5.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/openadr/limit_spans.h"

namespace perseus::openadr {

struct ReportInterval {
  int id = 0;
  double from_s = 0, to_s = 0;

  bool operator==(const ReportInterval&) const = default;
};

class ReportSeries {
 public:
  static constexpr int kMostReportIntervals = 2000;

  static Result<ReportSeries> of(const GridEvent& event, const std::vector<PlacedInterval>& placed, double now_means_s,
                                 const ReportRequest& request);
  /// The number of the last report whose intervals have ended `now_s`; nothing: none has.
  [[nodiscard]] std::optional<std::int64_t> last_due(double now_s) const;
  /// Of a report that exists: a number from 0 to last_due() at some time.
  [[nodiscard]] std::vector<ReportInterval> intervals(std::int64_t number) const;

 private:
  [[nodiscard]] ReportInterval interval(std::int64_t index) const;
  void count_intervals();
  void place_reports(const ReportRequest& request);
  [[nodiscard]] double due_s(std::int64_t number) const;

  std::vector<ReportInterval> cycle_;  ///< of one repetition
  double cycle_s_ = 0, end_s_ = 0;
  bool implied_ = false;
  std::int64_t count_ = 0;  ///< intervals in all
  std::int64_t first_ = 0, length_ = 0, step_ = 0, reports_ = 0;
};

}  // namespace perseus::openadr
