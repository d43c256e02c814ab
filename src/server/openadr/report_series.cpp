#include "server/openadr/report_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perseus::openadr {
namespace {

constexpr std::int64_t kMostCount = std::int64_t{1} << 40U;  // of intervals and of reports: as good as without end
constexpr double kShortestLoop_s = 1;

Error wrong(std::string why) { return {ErrorCode::invalid_input, std::move(why)}; }

}  // namespace

Result<ReportSeries> ReportSeries::of(const GridEvent& event, const std::vector<PlacedInterval>& placed,
                                      double now_means_s, const ReportRequest& request) {
  if (!request.historical) return wrong("it is about the future; allowed: historical reports");
  ReportSeries series;
  double begin_s = kForever, end_s = -kForever;
  for (const PlacedInterval& one : placed) {
    series.cycle_.push_back({event.intervals[one.interval].id, one.from_s, one.to_s});
    begin_s = std::min(begin_s, one.from_s);
    end_s = std::max(end_s, one.to_s);
  }
  if (placed.empty()) {
    if (!event.period.duration) return wrong("the event has no intervals and no duration");
    series.implied_ = true;
    begin_s = event.period.has_start && event.period.start_s ? *event.period.start_s : now_means_s;
    end_s = end_of(begin_s, *event.period.duration);
    series.cycle_.push_back({0, begin_s, end_s});
  }
  series.cycle_s_ = end_s - begin_s;
  if (!(series.cycle_s_ >= kShortestLoop_s)) return wrong("the event's intervals are shorter than a second in all");
  series.end_s_ = event.duration ? end_of(begin_s, *event.duration) : series.implied_ ? kForever : end_s;
  series.count_intervals();
  series.place_reports(request);
  if (series.length_ < 1) return wrong("it has no interval of the event");
  if (series.length_ > kMostReportIntervals) {
    return wrong(fmt::format("it has {} intervals; allowed: {}", series.length_, kMostReportIntervals));
  }
  return series;
}

void ReportSeries::count_intervals() {
  const double begin_s = std::ranges::min_element(cycle_, {}, &ReportInterval::from_s)->from_s;
  const double cycles = (end_s_ - begin_s) / cycle_s_;
  const auto in_cycle = static_cast<std::int64_t>(cycle_.size());
  if (!std::isfinite(cycle_s_)) {
    count_ = in_cycle;
  } else if (!(cycles * static_cast<double>(in_cycle) < static_cast<double>(kMostCount))) {
    count_ = kMostCount;
  } else {
    count_ = std::max(std::int64_t{0}, static_cast<std::int64_t>(std::floor(cycles))) * in_cycle;
    for (std::int64_t more = 0; more < in_cycle && interval(count_).from_s < end_s_; ++more) ++count_;
  }
}

void ReportSeries::place_reports(const ReportRequest& request) {
  const auto in_cycle = std::min(count_, static_cast<std::int64_t>(cycle_.size()));
  const std::int64_t asked = request.start_interval;
  length_ = request.num_intervals > 0 ? request.num_intervals : asked > 0 ? in_cycle - asked : in_cycle;
  length_ = std::min(length_, count_);
  if (length_ < 1) return;
  step_ = request.frequency > 0 ? request.frequency : length_;
  const std::int64_t wanted = request.repeat > 0 ? request.repeat : kMostCount;
  first_ = asked >= 0 ? asked : std::max(std::int64_t{0}, in_cycle - length_);
  const bool exceeds = request.repeat > 0 && first_ + (wanted - 1) * step_ + length_ > count_;
  if (asked >= 0 && exceeds && asked - length_ + 1 >= 0) first_ = asked - length_ + 1;
  if (first_ + length_ > count_) {
    length_ = 0;
    return;
  }
  reports_ = std::min(wanted, (count_ - first_ - length_) / step_ + 1);
}

ReportInterval ReportSeries::interval(std::int64_t index) const {
  const auto in_cycle = static_cast<std::int64_t>(cycle_.size());
  ReportInterval one = cycle_[static_cast<std::size_t>(index % in_cycle)];
  const std::int64_t cycles = index / in_cycle;
  if (cycles > 0) {
    one.from_s += static_cast<double>(cycles) * cycle_s_;
    one.to_s += static_cast<double>(cycles) * cycle_s_;
  }
  one.to_s = std::min(one.to_s, end_s_);
  constexpr std::int64_t ids = std::int64_t{1} << 31U;
  if (implied_) one.id = static_cast<int>(index % ids);
  return one;
}

double ReportSeries::due_s(std::int64_t number) const { return interval(first_ + number * step_ + length_ - 1).to_s; }

std::optional<std::int64_t> ReportSeries::last_due(double now_s) const {
  if (!(due_s(0) <= now_s)) return std::nullopt;
  std::int64_t due = 0, later = reports_;
  while (due + 1 < later) {
    const std::int64_t middle = due + (later - due) / 2;
    (due_s(middle) <= now_s ? due : later) = middle;
  }
  return due;
}

std::vector<ReportInterval> ReportSeries::intervals(std::int64_t number) const {
  std::vector<ReportInterval> result;
  result.reserve(static_cast<std::size_t>(length_));
  for (std::int64_t k = 0; k < length_; ++k) result.push_back(interval(first_ + number * step_ + k));
  return result;
}

}  // namespace perseus::openadr
