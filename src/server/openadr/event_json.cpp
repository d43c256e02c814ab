#include "server/openadr/event_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "io/formats/json_reader.h"
#include "server/openadr/limit_spans.h"

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

/// OpenADR 3.0 has objects here.
Status read_targets(const JsonReader& json, std::vector<std::string>& targets) {
  const Status is_older = json.for_each([](const JsonReader& element) -> Status {
    return element.for_each_member([](std::string_view, const JsonReader&) { return Status(Ok{}); })
               ? Status(element.error("the name of a target, as in OpenADR 3.1; objects are targets of OpenADR 3.0"))
               : Status(Ok{});
  });
  return is_older ? read_texts(json, targets) : is_older;
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
  payload.type = upper(payload.type);
  fields.read("values", [&](const JsonReader& list) { return read_values(list, values_left, payload); });
  Status read = fields.end();
  return read && payload.type.empty() ? Status(json.error("a payload with a type")) : read;
}

Status read_payloads(const JsonReader& json, int& values_left, EventInterval& interval) {
  PresentFields fields(json);
  fields.read("payloads", [&](const JsonReader& list) {
    return list.for_each([&](const JsonReader& element) {
      if (--values_left < 0) return Status(element.error(fmt::format("at most {} values per event", kMostValues)));
      return read_payload(element, values_left, interval.payloads.emplace_back());
    });
  });
  return fields.end();
}

/// An error: its times cannot be read. Ids are only for reports: without one, it has its place in the list.
Status read_interval(const JsonReader& json, int place, int& values_left, EventInterval& interval) {
  interval.id = place;
  PresentFields fields(json);
  fields.read("id", [&](const JsonReader& id) -> Status {
    if (const auto number = id.integer()) interval.id = *number;
    return Ok{};
  });
  fields.read("intervalPeriod", [&](const JsonReader& period) { return read_period(period, interval.period); });
  if (Status read = read_payloads(json, values_left, interval); !read) interval.unread = read.error().message;
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
    if (kind != "REPORT_PAYLOAD_DESCRIPTOR" && !unit.empty()) units.emplace(upper(type), unit);
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

bool may_limit(const EventInterval& interval) {
  return !interval.unread.empty() ||
         std::ranges::any_of(interval.payloads, [](const EventPayload& payload) { return limits_power(payload.type); });
}

/// Reads an event piece by piece, so that what cannot be read of it hides nothing else.
class GridEventReader {
 public:
  explicit GridEventReader(const JsonReader& json) : json_(json) {}

  GridEvent read() {
    read_names();
    read_times();
    read_terms();
    if (first_error_) { event_.unread = UnreadPart{*std::move(first_error_), has_times_, may_limit_}; }
    return std::move(event_);
  }

 private:
  void keep_error(const Status& read) {
    if (!read && !first_error_) first_error_ = read.error().message;
  }
  void lose_times(const Status& read) {
    if (read) return;
    keep_error(read);
    has_times_ = false;
  }

  void read_names() {
    PresentFields fields(json_);
    fields.text("id", event_.id);
    Status read = fields.end();
    if (read && event_.id.empty()) read = json_.error("an event with an id");
    if (!read) event_.id.clear();
    lose_times(read);
    PresentFields others(json_);  // for people: of any length
    others.read("eventName", [&](const JsonReader& name) -> Status {
      if (const auto text = name.string()) event_.name = std::string(text->substr(0, kMostText));
      return Ok{};
    });
    std::optional<std::optional<double>> modified;
    others.parsed("modificationDateTime", modified, parse_event_time);
    if (modified) event_.modified_s = *modified;
  }

  void read_times() {
    PresentFields fields(json_);
    fields.read("intervalPeriod", [&](const JsonReader& period) { return read_period(period, event_.period); });
    fields.parsed("duration", event_.duration, parse_iso_duration);
    const Status read = fields.end();
    lose_times(read);
    PresentFields lists(json_);
    int values_left = kMostValues, place = 0;
    bool is_lost = !read;  // the interval before has no end, or the default of their starts and durations is unknown
    lists.read("intervals", [&](const JsonReader& list) {
      return list.for_each([&](const JsonReader& element) {
        if (place >= kMostIntervals) {
          return Status(element.error(fmt::format("at most {} intervals", kMostIntervals)));
        }
        EventInterval interval;
        Status times = read_interval(element, place++, values_left, interval);
        if (times) times = check_times(element, interval);
        may_limit_ = may_limit_ || may_limit(interval);
        lose_times(times);
        const EventPeriod& own = interval.period;
        is_lost = !times || (is_lost && !(own.has_start && own.start_s)) || (!read && !own.duration);
        if (!is_lost) event_.intervals.push_back(std::move(interval));
        return Status(Ok{});
      });
    });
    const Status listed = lists.end();
    may_limit_ = may_limit_ || !listed;
    lose_times(listed);
  }

  Status check_times(const JsonReader& json, const EventInterval& interval) const {
    const EventPeriod& own = interval.period;
    if (!own.duration && !event_.period.duration) return json.error("a duration, its own or the event's");
    for (const auto& randomize : {own.randomize, event_.period.randomize}) {
      if (randomize && randomize->never_ends) return json.error("a randomizeStart that ends");
    }
    return Ok{};
  }

  /// For whom it is, in which units, and which priority it has.
  void read_terms() {
    PresentFields fields(json_);
    fields.text("programID", event_.program);
    fields.read("targets", [&](const JsonReader& list) { return read_targets(list, event_.targets); });
    fields.read("priority", [&](const JsonReader& number) { return read_priority(number, event_.priority); });
    fields.read("payloadDescriptors", [&](const JsonReader& list) { return read_units(list, event_.units); });
    keep_error(fields.end());
    PresentFields reports(json_);
    reports.read("reportDescriptors", [&](const JsonReader& list) { return read_reports(list, event_.reports); });
    if (const Status read = reports.end(); !read) { event_.reports.emplace_back().unreadable = read.error().message; }
  }

  const JsonReader& json_;
  GridEvent event_;
  std::optional<std::string> first_error_;
  bool has_times_ = true, may_limit_ = false;
};

Status read_program(const JsonReader& json, GridProgram& program) {
  PresentFields fields(json);
  fields.text("id", program.id);
  fields.text("programName", program.name);
  fields.read("payloadDescriptors", [&](const JsonReader& list) { return read_units(list, program.units); });
  if (Status read = fields.end(); !read) return read;
  if (program.id.empty()) return json.error("a program with an id");
  return Ok{};
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

Result<std::vector<GridEvent>> parse_events(std::string_view text, const std::string& name) {
  std::vector<GridEvent> events;
  const Status read = visit_objects(text, name, [&](const JsonReader& element) -> Status {
    events.push_back(GridEventReader(element).read());
    return Ok{};
  });
  if (!read) return read.error();
  return events;
}

Result<GridEvent> parse_event(std::string_view text, const std::string& name) {
  const auto document = formats::parse_json(text, name);
  if (!document) return document.error();
  const JsonReader root = document->root();
  return GridEventReader(root).read();
}

Result<std::vector<GridProgram>> parse_programs(std::string_view text, const std::string& name) {
  std::vector<GridProgram> programs;
  const Status read = visit_objects(
      text, name, [&](const JsonReader& element) { return read_program(element, programs.emplace_back()); });
  if (!read) return read.error();
  return programs;
}

}  // namespace perseus::openadr
