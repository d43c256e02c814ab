#include "server/openadr/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "io/formats/json_reader.h"

namespace perseus::openadr {
namespace {

constexpr std::string_view kUsage = "USAGE", kDemand = "DEMAND";
constexpr double kWholePart = 0.999;  // of an interval: the rest is rounding
constexpr double kSecondsPerHour = 3600;
constexpr int kDigits = 9;

struct NamedUnit {
  std::string_view payload, name;
  double size;  ///< in W, or Wh
};
constexpr std::array<NamedUnit, 6> kUnitsOfReports{{{kUsage, "KWH", 1e3},
                                                    {kUsage, "WH", 1},
                                                    {kUsage, "MWH", 1e6},
                                                    {kDemand, "KW", 1e3},
                                                    {kDemand, "W", 1},
                                                    {kDemand, "MW", 1e6}}};

/// Without a unit: the first of its payload.
const NamedUnit* unit_of(const ReportRequest& request) {
  const auto* const found = std::ranges::find_if(kUnitsOfReports, [&](const NamedUnit& unit) {
    return unit.payload == request.payload_type && (request.units.empty() || unit.name == request.units);
  });
  return found == kUnitsOfReports.end() ? nullptr : found;
}

struct Reading {
  double mean_w = 0, known_part = 0, metered_part = 0;
};

Reading reading_of(const ReportInterval& interval, std::span<const DrawnStep> steps) {
  Reading reading;
  double energy_j = 0, known_s = 0, metered_s = 0;
  auto step = std::ranges::upper_bound(steps, interval.from_s, {}, &DrawnStep::to_s);
  for (; step != steps.end() && step->from_s < interval.to_s; ++step) {
    const double both_s = std::min(step->to_s, interval.to_s) - std::max(step->from_s, interval.from_s);
    if (!(both_s > 0)) continue;
    energy_j += step->mean.value() * both_s;
    known_s += both_s;
    if (step->is_metered) metered_s += both_s;
  }
  const double length_s = interval.to_s - interval.from_s;
  if (known_s > 0 && length_s > 0) return {energy_j / known_s, known_s / length_s, metered_s / length_s};
  return reading;
}

std::string_view quality_of(const Reading& reading) {
  if (reading.known_part <= 0) return "MISSING";
  return reading.metered_part >= kWholePart ? "OK" : "ESTIMATED";
}

double value_of(const Reading& reading, const ReportInterval& interval, const NamedUnit& unit) {
  const double hours = unit.payload == kUsage ? (interval.to_s - interval.from_s) / kSecondsPerHour : 1;
  return with_digits(std::max(0.0, reading.mean_w) * hours / unit.size, kDigits);
}

void append_interval(JsonWriter& f, const ReportInterval& interval, const Reading& reading, const NamedUnit& unit) {
  f.always("id", interval.id);
  f.always("intervalPeriod", JsonObject{[&](JsonWriter& period) {
             period.always("start", time_text(interval.from_s));
             period.always("duration",
                           fmt::format("PT{:.0f}S", std::floor(interval.to_s) - std::floor(interval.from_s)));
           }});
  std::vector<std::string> payloads;
  if (reading.known_part > 0) {
    const std::array values{value_of(reading, interval, unit)};
    payloads.push_back(json_object([&](JsonWriter& payload) {
      payload.always("type", unit.payload);
      payload.always("values", values);
    }));
  }
  const std::array quality{quality_of(reading)};
  payloads.push_back(json_object([&](JsonWriter& payload) {
    payload.always("type", "DATA_QUALITY");
    payload.always("values", quality);
  }));
  f.always("payloads", JsonList{payloads, [](const std::string& payload) { return JsonRaw{payload}; }});
}

Status read_interval_of_report(const formats::JsonReader& json, ReportInterval& interval) {
  formats::JsonFields fields(json);
  interval.id = fields.integer("id");
  formats::JsonFields period(fields.value("intervalPeriod"));
  const auto start = parse_event_time(period.string("start"));
  const auto duration = parse_iso_duration(period.string("duration"));
  if (fields.error()) return *fields.error();
  if (period.error()) return *period.error();
  if (!start || !*start || !duration) return json.error("an interval with its own start and duration");
  interval.from_s = **start;
  interval.to_s = end_of(**start, *duration);
  return Ok{};
}

/// Those of the first resource.
Status read_intervals(const formats::JsonReader& resources, std::vector<ReportInterval>& intervals) {
  bool is_first = true;
  return resources.for_each([&](const formats::JsonReader& resource) -> Status {
    if (!std::exchange(is_first, false)) return Ok{};
    formats::JsonFields fields(resource);
    return fields.value("intervals").for_each([&](const formats::JsonReader& element) -> Status {
      if (std::ssize(intervals) >= kMostIntervals) return element.error(fmt::format("at most {}", kMostIntervals));
      return read_interval_of_report(element, intervals.emplace_back());
    });
  });
}

std::string reading_type(const ReportRequest& request, bool metered) {
  if (!metered) return "ESTIMATED";
  if (!request.reading_type.empty() && request.reading_type != "ESTIMATED") return request.reading_type;
  return request.payload_type == kDemand ? "MEAN" : "DIRECT_READ";
}

}  // namespace

Status check_request(const ReportRequest& request) {
  const auto wrong = [](std::string why) { return Error{ErrorCode::invalid_input, std::move(why)}; };
  if (!request.unreadable.empty()) return wrong(request.unreadable);
  if (request.payload_type != kUsage && request.payload_type != kDemand) {
    return wrong(fmt::format("payload {}; allowed: USAGE, DEMAND", request.payload_type));
  }
  if (unit_of(request) == nullptr) {
    return wrong(fmt::format("unit {} of {}; allowed: {}", request.units, request.payload_type,
                             request.payload_type == kUsage ? "KWH, WH, MWH" : "KW, W, MW"));
  }
  constexpr std::array<std::string_view, 5> readings{"", "DIRECT_READ", "ESTIMATED", "MEAN", "AVERAGE"};
  if (std::ranges::find(readings, request.reading_type) == readings.end()) {
    return wrong(
        fmt::format("reading type {}; allowed: DIRECT_READ, ESTIMATED, MEAN, AVERAGE, or none", request.reading_type));
  }
  return Ok{};
}

std::string report_name(const ReportRequest& request, const std::vector<ReportInterval>& intervals,
                        const ReportAuthor& author) {
  return fmt::format("perseus {} {} {} {}", request.payload_type, author.resource, time_text(intervals.front().from_s),
                     intervals.size());
}

std::string report_json(const std::string& event, const ReportRequest& request,
                        const std::vector<ReportInterval>& intervals, std::span<const DrawnStep> steps,
                        const ReportAuthor& author) {
  const NamedUnit* const unit = unit_of(request);
  PERSEUS_CHECK(unit != nullptr && !intervals.empty(), "a report that can be sent");
  std::vector<std::string> texts;
  bool metered = true;
  for (const ReportInterval& interval : intervals) {
    const Reading reading = reading_of(interval, steps);
    metered = metered && reading.metered_part >= kWholePart;
    texts.push_back(json_object([&](JsonWriter& f) { append_interval(f, interval, reading, *unit); }));
  }
  const std::string descriptor = json_object([&](JsonWriter& f) {
    f.always("objectType", "REPORT_PAYLOAD_DESCRIPTOR");
    f.always("payloadType", request.payload_type);
    f.always("readingType", reading_type(request, metered));
    f.always("units", unit->name);
  });
  const std::string resource = json_object([&](JsonWriter& f) {
    f.always("resourceName", request.aggregate ? "AGGREGATED_REPORT" : author.resource);
    f.always("intervals", JsonList{texts, [](const std::string& text) { return JsonRaw{text}; }});
  });
  return json_object([&](JsonWriter& f) {
    f.always("eventID", event);
    f.always("clientName", author.client_name);
    f.always("reportName", report_name(request, intervals, author));
    f.always("payloadDescriptors", JsonRaw{"[" + descriptor + "]"});
    f.always("resources", JsonRaw{"[" + resource + "]"});
  });
}

Result<std::vector<StoredReport>> parse_reports(std::string_view text, const std::string& name) {
  const auto document = formats::parse_json(text, name);
  if (!document) return document.error();
  std::vector<StoredReport> reports;
  const Status read = document->root().for_each([&](const formats::JsonReader& element) -> Status {
    if (std::ssize(reports) >= kMostObjects) return element.error(fmt::format("at most {} reports", kMostObjects));
    formats::JsonFields fields(element);
    StoredReport report;
    report.id = std::string(fields.string("id"));
    if (const auto named = fields.optional("reportName"); named && named->is_string()) {
      report.name = std::string(*named->string());
    }
    if (!read_intervals(fields.value("resources"), report.intervals)) report.intervals.clear();
    if (!fields.error() && !report.id.empty() && report.id.size() <= kMostText) {
      reports.push_back(std::move(report));
    }
    return Ok{};
  });
  if (!read) return read.error();
  return reports;
}

}  // namespace perseus::openadr
