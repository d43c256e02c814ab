#include "server/openadr/event_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "io/formats/json_reader.h"

namespace perseus::openadr {
namespace {

using formats::JsonFields;
using formats::JsonReader;

/// The members of an object, where null is like a missing member. The first error stays.
class PresentFields {
 public:
  explicit PresentFields(const JsonReader& object) : fields_(object) {}

  void read(std::string_view key, const std::function<Status(const JsonReader&)>& visit) {
    const auto member = fields_.optional(key);
    if (fields_.error() || error_ || !member || member->is_null()) return;
    if (Status read = visit(*member); !read) error_ = read.error();
  }
  void text(std::string_view key, std::string& value) {
    read(key, [&](const JsonReader& member) -> Status {
      const auto text = member.string();
      if (!text) return text.error();
      if (text->size() > kMostText) return member.error(fmt::format("at most {} bytes", kMostText));
      value = std::string(*text);
      return Ok{};
    });
  }
  template <class T>
  void parsed(std::string_view key, std::optional<T>& value, Result<T> (*parse)(std::string_view)) {
    read(key, [&](const JsonReader& member) -> Status {
      const auto text = member.string();
      if (!text) return text.error();
      auto result = parse(*text);
      if (!result) return member.error(result.error().message);
      value = *std::move(result);
      return Ok{};
    });
  }
  [[nodiscard]] Status end() const {
    if (fields_.error()) return *fields_.error();
    if (error_) return *error_;
    return Ok{};
  }

 private:
  JsonFields fields_;
  std::optional<Error> error_;
};

Status read_texts(const JsonReader& json, std::vector<std::string>& values) {
  return json.for_each([&](const JsonReader& element) -> Status {
    const auto text = element.string();
    if (!text) return text.error();
    if (text->size() > kMostText || std::ssize(values) >= kMostObjects) {
      return element.error(fmt::format("at most {} texts of at most {} bytes", kMostObjects, kMostText));
    }
    values.emplace_back(*text);
    return Ok{};
  });
}

Status read_period(const JsonReader& json, EventPeriod& period) {
  PresentFields fields(json);
  std::optional<std::optional<double>> start;
  fields.parsed("start", start, parse_event_time);
  fields.parsed("duration", period.duration, parse_iso_duration);
  fields.parsed("randomizeStart", period.randomize, parse_iso_duration);
  period.has_start = start.has_value();
  if (start) period.start_s = *start;
  return fields.end();
}

Status read_values(const JsonReader& json, int& values_left, EventPayload& payload) {
  return json.for_each([&](const JsonReader& element) -> Status {
    if (--values_left < 0) return element.error(fmt::format("at most {} values per event", kMostValues));
    const auto number = element.number();
    payload.values.push_back(number ? std::optional(*number) : std::nullopt);
    return Ok{};
  });
}

Status read_payload(const JsonReader& json, int& values_left, EventPayload& payload) {
  PresentFields fields(json);
  fields.text("type", payload.type);
  fields.read("values", [&](const JsonReader& list) { return read_values(list, values_left, payload); });
  return fields.end();
}

Status read_interval(const JsonReader& json, int& values_left, EventInterval& interval) {
  PresentFields fields(json);
  fields.read("id", [&](const JsonReader& id) -> Status {
    const auto number = id.integer();
    if (!number) return number.error();
    interval.id = *number;
    return Ok{};
  });
  fields.read("intervalPeriod", [&](const JsonReader& period) { return read_period(period, interval.period); });
  fields.read("payloads", [&](const JsonReader& list) {
    return list.for_each([&](const JsonReader& element) {
      if (--values_left < 0) return Status(element.error(fmt::format("at most {} values per event", kMostValues)));
      return read_payload(element, values_left, interval.payloads.emplace_back());
    });
  });
  return fields.end();
}

/// Descriptors of reports may be among those of a program's events.
Status read_units(const JsonReader& json, PayloadUnits& units) {
  int left = kMostObjects;
  return json.for_each([&](const JsonReader& element) -> Status {
    if (--left < 0) return element.error(fmt::format("at most {} descriptors", kMostObjects));
    PresentFields fields(element);
    std::string kind, type, unit;
    fields.text("objectType", kind);
    fields.text("payloadType", type);
    fields.text("units", unit);
    if (kind != "REPORT_PAYLOAD_DESCRIPTOR" && !unit.empty()) units.emplace(type, unit);
    return fields.end();
  });
}

Status read_report_request(const JsonReader& json, ReportRequest& report) {
  PresentFields fields(json);
  const auto number = [&](std::string_view key, int& value) {
    fields.read(key, [&](const JsonReader& member) -> Status {
      const auto read = member.integer();
      if (!read) return read.error();
      value = *read;
      return Ok{};
    });
  };
  const auto truth = [&](std::string_view key, bool& value) {
    fields.read(key, [&](const JsonReader& member) -> Status {
      const auto read = member.boolean();
      if (!read) return read.error();
      value = *read;
      return Ok{};
    });
  };
  fields.text("payloadType", report.payload_type);
  fields.text("units", report.units);
  fields.text("readingType", report.reading_type);
  fields.read("targets", [&](const JsonReader& list) { return read_texts(list, report.targets); });
  truth("aggregate", report.aggregate);
  truth("historical", report.historical);
  number("startInterval", report.start_interval);
  number("numIntervals", report.num_intervals);
  number("frequency", report.frequency);
  number("repeat", report.repeat);
  return fields.end();
}

/// A descriptor that cannot be read does not keep the event's limits from being followed.
Status read_reports(const JsonReader& json, std::vector<ReportRequest>& reports) {
  return json.for_each([&](const JsonReader& element) -> Status {
    if (std::ssize(reports) >= kMostObjects) {
      return element.error(fmt::format("at most {} report descriptors", kMostObjects));
    }
    ReportRequest report;
    if (Status read = read_report_request(element, report); !read) {
      report = {};
      report.unreadable = read.error().message;
    }
    reports.push_back(std::move(report));
    return Ok{};
  });
}

Status read_priority(const JsonReader& json, std::optional<int>& priority) {
  const auto number = json.number();
  if (!number) return number.error();
  if (*number < 0 || *number != std::floor(*number))
    return json.error("an integer of at least 0, the highest priority");
  priority = static_cast<int>(std::min(*number, static_cast<double>(std::numeric_limits<int>::max() - 1)));
  return Ok{};
}

Status read_event(const JsonReader& json, GridEvent& event) {
  PresentFields fields(json);
  fields.text("id", event.id);
  fields.text("programID", event.program);
  std::optional<std::optional<double>> modified;
  fields.parsed("modificationDateTime", modified, parse_event_time);
  if (modified) event.modified_s = *modified;
  fields.read("eventName", [&](const JsonReader& name) -> Status {  // for people: of any length
    const auto text = name.string();
    if (!text) return text.error();
    event.name = std::string(text->substr(0, kMostText));
    return Ok{};
  });
  fields.read("priority", [&](const JsonReader& number) { return read_priority(number, event.priority); });
  fields.read("targets", [&](const JsonReader& list) { return read_texts(list, event.targets); });
  fields.read("payloadDescriptors", [&](const JsonReader& list) { return read_units(list, event.units); });
  fields.read("reportDescriptors", [&](const JsonReader& list) { return read_reports(list, event.reports); });
  fields.read("intervalPeriod", [&](const JsonReader& period) { return read_period(period, event.period); });
  fields.parsed("duration", event.duration, parse_iso_duration);
  int values_left = kMostValues;
  fields.read("intervals", [&](const JsonReader& list) {
    return list.for_each([&](const JsonReader& element) {
      if (std::ssize(event.intervals) >= kMostIntervals) {
        return Status(element.error(fmt::format("at most {} intervals", kMostIntervals)));
      }
      return read_interval(element, values_left, event.intervals.emplace_back());
    });
  });
  if (Status read = fields.end(); !read) return read;
  if (event.id.empty()) return json.error("an event with an id");
  return Ok{};
}

Status read_program(const JsonReader& json, GridProgram& program) {
  PresentFields fields(json);
  fields.text("id", program.id);
  fields.text("programName", program.name);
  fields.read("payloadDescriptors", [&](const JsonReader& list) { return read_units(list, program.units); });
  if (Status read = fields.end(); !read) return read;
  if (program.id.empty()) return json.error("a program with an id");
  return Ok{};
}

std::string id_of(const JsonReader& json) {
  PresentFields fields(json);
  std::string id;
  fields.text("id", id);
  return id;
}

Status visit_objects(std::string_view text, const std::string& name,
                     const std::function<Status(const JsonReader&)>& visit) {
  const auto document = formats::parse_json(text, name);
  if (!document) return document.error();
  int left = kMostObjects;
  return document->root().for_each([&](const JsonReader& element) -> Status {
    if (--left < 0) return element.error(fmt::format("at most {} objects", kMostObjects));
    return visit(element);
  });
}

}  // namespace

Result<EventList> parse_events(std::string_view text, const std::string& name) {
  EventList list;
  const Status read = visit_objects(text, name, [&](const JsonReader& element) -> Status {
    GridEvent event;
    if (Status event_read = read_event(element, event); !event_read) {
      list.unreadable.push_back({id_of(element), event_read.error().message});
    } else {
      list.events.push_back(std::move(event));
    }
    return Ok{};
  });
  if (!read) return read.error();
  return list;
}

Result<GridEvent> parse_event(std::string_view text, const std::string& name) {
  const auto document = formats::parse_json(text, name);
  if (!document) return document.error();
  GridEvent event;
  if (Status read = read_event(document->root(), event); !read) return read.error();
  return event;
}

Result<std::vector<GridProgram>> parse_programs(std::string_view text, const std::string& name) {
  std::vector<GridProgram> programs;
  const Status read = visit_objects(
      text, name, [&](const JsonReader& element) { return read_program(element, programs.emplace_back()); });
  if (!read) return read.error();
  return programs;
}

}  // namespace perseus::openadr
