#include "server/openadr/event_reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace perseus::openadr {
namespace {

constexpr double kFirstRetry_s = 60, kLongestRetry_s = 3600;
constexpr int kMostRetryDoublings = 8;
constexpr std::size_t kMostReportLines = 10'000;

/// Starts and ends are sent in whole seconds.
bool same_intervals(const std::vector<ReportInterval>& a, const std::vector<ReportInterval>& b) {
  return std::ranges::equal(a, b, [](const ReportInterval& x, const ReportInterval& y) {
    return x.id == y.id && std::abs(x.from_s - y.from_s) < 1 && std::abs(x.to_s - y.to_s) < 1;
  });
}

}  // namespace

EventReporter::EventReporter(ReporterOptions options, ReporterParts parts)
    : options_(std::move(options)), parts_(parts) {}

void EventReporter::report(std::span<const SeenEvent> events, double now_s) {
  std::map<std::string, Progress> still;
  int attempts = 0;
  for (const SeenEvent& seen : events) {
    for (const ReportRequest& request : seen.event.reports) {
      if (!concerns_us(request)) continue;
      // Two descriptors that differ in nothing of this are one: their reports would have the same name.
      const std::string key =
          fmt::format("{}\n{}{}\n{} {} {} {}", seen.event.id, request.payload_type, request.unreadable,
                      request.start_interval, request.num_intervals, request.frequency, request.historical);
      const auto known = progress_.find(key);
      const auto [place, is_new] = still.emplace(key, known == progress_.end() ? Progress{} : known->second);
      if (!is_new || attempts >= kMostAttempts) continue;
      if (!advance(seen, request, place->second, now_s)) continue;
      // A server that hangs must not keep events from being polled.
      attempts = place->second.failures > 0 ? kMostAttempts : attempts + 1;
    }
  }
  progress_ = std::move(still);
}

bool EventReporter::advance(const SeenEvent& seen, const ReportRequest& request, Progress& progress, double now_s) {
  const auto leave = [&](const std::string& why) {
    log_once(fmt::format("event {} ({}): no report is sent: {}", seen.event.id, seen.event.name, why));
    return false;
  };
  if (const Status right = check_request(request); !right) return leave(right.error().message);
  const auto placed = place_intervals(seen.event, seen.now_means_s, [&](std::size_t interval) {
    return random_shift(options_.seed, seen.event.id, interval);
  });
  if (!placed) return leave(placed.error().message);
  const auto series = ReportSeries::of(seen.event, *placed, seen.now_means_s, request);
  if (!series) return leave(series.error().message);
  const auto last = series->last_due(now_s - kLater_s);
  if (!last) return false;
  if (auto first = series->intervals(0); progress.next < 0 || first != progress.first) {
    progress = {*last, std::move(first), 0, 0};
  }
  if (progress.next > *last || parts_.unstepped->now_s() < progress.retry_s) return false;
  const Status sent = send(seen.event, request, series->intervals(progress.next));
  if (!sent) {
    const double doubled_s = std::ldexp(kFirstRetry_s, std::min(progress.failures++, kMostRetryDoublings));
    const double wait_s = std::max(doubled_s, parts_.receiver->asked_wait_s());
    progress.retry_s = parts_.unstepped->now_s() + std::min(wait_s, kLongestRetry_s);
    if (failure_ != sent.error().message) {
      parts_.host->log(sent.error().message + "; the report is tried again, and limits are followed as before");
    }
    failure_ = sent.error().message;
    return true;
  }
  if (!failure_.empty()) parts_.host->log("reports are taken again after: " + failure_);
  failure_.clear();
  ++progress.next;
  progress.failures = 0;
  return true;
}

Status EventReporter::send(const GridEvent& event, const ReportRequest& request,
                           const std::vector<ReportInterval>& intervals) {
  const auto stored = parts_.receiver->reports(event.id, options_.author.client_name);
  if (!stored) return stored.error();
  const std::string name = report_name(request, intervals, options_.author);
  const auto found = std::ranges::find(*stored, name, &StoredReport::name);
  if (found != stored->end() && same_intervals(found->intervals, intervals)) return Ok{};
  const auto powers = parts_.host->powers(intervals.front().from_s, intervals.back().to_s);
  if (!powers) return powers.error();
  const std::string text = report_json(event.id, request, intervals, *powers, options_.author);
  const Status sent =
      found == stored->end() ? parts_.receiver->create(text) : parts_.receiver->replace(found->id, text);
  if (!sent) return sent.error();
  const bool metered = std::ranges::all_of(*powers, &DrawnStep::is_metered);
  parts_.host->log(fmt::format("event {} ({}): reported {} of {} intervals from {}{}", event.id, event.name,
                               request.payload_type, intervals.size(), time_text(intervals.front().from_s),
                               powers->empty() ? ", without any power: the server has none of that time"
                               : metered       ? ", metered"
                                               : ", estimated"));
  return Ok{};
}

bool EventReporter::concerns_us(const ReportRequest& request) const {
  if (options_.targets.empty() || request.targets.empty()) return true;
  return std::ranges::any_of(request.targets, [&](const std::string& target) {
    return std::ranges::find(options_.targets, target) != options_.targets.end();
  });
}

void EventReporter::log_once(const std::string& text) {
  if (logged_.size() >= kMostReportLines) logged_.clear();
  if (logged_.insert(text).second) parts_.host->log(text);
}

}  // namespace perseus::openadr
