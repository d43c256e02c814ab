// Any text is a list of events or an error that names its source; any event gives steps that begin now and ascend, and
// reports of intervals that have ended.
#include <cstdint>
#include <string_view>

#include "server/openadr/event_json.h"
#include "server/openadr/event_memory.h"
#include "server/openadr/report_text.h"
#include "server/openadr/signal_steps.h"
#include "server/openadr/ven_registration.h"
#include "server/openadr/vtn_client.h"

namespace {

using namespace perseus;

/// The last due report of each descriptor.
void check_reports(const openadr::SeenEvent& seen, double now_s) {
  const auto placed = openadr::place_intervals(seen.event, seen.now_means_s, [](std::size_t) { return 0.5; });
  if (!placed) return;
  const std::vector<openadr::DrawnStep> steps{{now_s - 3600, now_s - 60, Watts(1000), true},
                                              {now_s, now_s + 60, {}, false}};
  for (const openadr::ReportRequest& request : seen.event.reports) {
    if (!openadr::check_request(request)) continue;
    const auto series = openadr::ReportSeries::of(seen.event, *placed, seen.now_means_s, request);
    const auto last = series ? series->last_due(now_s) : std::nullopt;
    if (!last) continue;
    const auto intervals = series->intervals(*last);
    PERSEUS_CHECK(!intervals.empty() && intervals.back().to_s <= now_s, "intervals that have ended");
    std::string text = report_json(seen.event.id, request, intervals, steps, {"ven", "hall"});
    text.insert(1, "\"id\":\"one\",");
    const auto read = openadr::parse_reports("[" + text + "]", "own");
    PERSEUS_CHECK(read && read->size() == 1, "its own report can be read");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(openadr::parse_programs(text, "fuzz"));
  static_cast<void>(openadr::parse_token_url(std::string(text)));
  static_cast<void>(openadr::parse_access_token(std::string(text)));
  static_cast<void>(openadr::parse_reports(text, "fuzz"));
  static_cast<void>(openadr::parse_named_objects(text, "fuzz", "venName"));
  static_cast<void>(openadr::parse_object_id(std::string(text), "fuzz"));
  const double wait_s = openadr::parse_retry_after(text);
  PERSEUS_CHECK(wait_s >= 0 && wait_s <= openadr::kSecondsPerDay, "at most a day");
  static_cast<void>(openadr::parse_event_time(text));
  static_cast<void>(openadr::parse_iso_duration(text));
  auto list = openadr::parse_events(text, "fuzz");
  if (!list) {
    PERSEUS_CHECK(list.error().message.starts_with("fuzz:"), "the error names its source");
    return 0;
  }
  constexpr double now_s = 1.8e9;
  openadr::FollowSettings settings;
  settings.baseline = Watts(1e6);
  settings.levels = {std::nullopt, Watts(9e5), Watts(6e5), Watts(3e5)};
  settings.emergency = Watts(2e5);
  settings.most_steps = 100;
  openadr::EventMemory memory("fuzz", settings);
  memory.take({*std::move(list)}, {}, now_s);
  for (const openadr::SeenEvent& seen : memory.events()) check_reports(seen, now_s);
  const auto signal = openadr::signal_steps(memory.events(), {}, "PRICE", "fuzz", now_s).steps;
  PERSEUS_CHECK(!signal.empty() && signal.front().from_s == now_s, "prices from now on");
  for (std::size_t k = 1; k < signal.size(); ++k) {
    PERSEUS_CHECK(signal[k - 1].from_s < signal[k].from_s, "prices in order of time");
  }
  openadr::KnownLimits known;
  for (const openadr::SeenEvent& seen : memory.events()) known[seen.event.id] = {{now_s, Watts(5e5)}};
  const auto steps = openadr::watt_steps(memory.events(), {}, settings, "fuzz", now_s, known).steps;
  PERSEUS_CHECK(!steps.empty() && steps.size() <= settings.most_steps,
                "at least one step and at most as many as allowed");
  PERSEUS_CHECK(steps.front().from_s == now_s, "from now on");
  for (std::size_t k = 0; k < steps.size(); ++k) {
    PERSEUS_CHECK(k == 0 || steps[k - 1].from_s < steps[k].from_s, "in order of time");
    PERSEUS_CHECK(!steps[k].limit || (*steps[k].limit >= Watts(0) && *steps[k].limit <= Watts(1e12)), "in range");
  }
  return 0;
}
