#include "server/openadr/limit_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace perseus::openadr {
namespace {

constexpr double kMostWatts = 1e12;
constexpr double kShortestCycle_s = 1, kRepeatedDays = 7;
constexpr std::size_t kMostReasons = 100;  // per event
constexpr std::string_view kFollowed =
    "IMPORT_CAPACITY_LIMIT, IMPORT_CAPACITY_SUBSCRIPTION, DISPATCH_SETPOINT, DISPATCH_SETPOINT_RELATIVE, SIMPLE, "
    "ALERT_GRID_EMERGENCY, PRICE with --price-above, GHG with --ghg-above";

std::optional<LimitKind> kind_of(std::string_view type) {
  if (type == "IMPORT_CAPACITY_LIMIT") return LimitKind::capacity;
  if (type == "IMPORT_CAPACITY_SUBSCRIPTION") return LimitKind::subscription;
  if (type == "DISPATCH_SETPOINT" || type == "DISPATCH_SETPOINT_RELATIVE") return LimitKind::setpoint;
  if (type == "SIMPLE") return LimitKind::level;
  if (type == "ALERT_GRID_EMERGENCY") return LimitKind::alert;
  return std::nullopt;
}

bool has_levels(const FollowSettings& settings) {
  return std::ranges::any_of(settings.levels, [](const auto& watts) { return watts.has_value(); });
}

std::string name_of(const GridEvent& event) {
  return event.name.empty() ? fmt::format("event {}", event.id) : fmt::format("event {} ({})", event.id, event.name);
}

/// The values of one payload: watts, or nothing where a value cannot be used, and why the first of them cannot.
struct PayloadWatts {
  std::vector<std::optional<double>> limits_w;
  std::string why;
  bool by_settings = false;  ///< the site takes no part in it; no limits then
};

/// The limits of one payload.
class PayloadLimits {
 public:
  PayloadLimits(const GridEvent& event, const PayloadUnits& units, const FollowSettings& settings)
      : event_(event), units_(units), settings_(settings) {}

  [[nodiscard]] PayloadWatts limits_of(const EventPayload& payload) const {
    const std::string& type = payload.type;
    if (type == "ALERT_GRID_EMERGENCY") {
      if (!settings_.emergency) return no_watts("no watts for it are configured; allowed: with --emergency");
      return {{settings_.emergency->value()}, {}};
    }
    const bool is_relative = type == "DISPATCH_SETPOINT_RELATIVE";
    if (is_relative && !settings_.baseline) return no_watts("no baseline is configured; allowed: with --baseline");
    PayloadWatts result;
    if (payload.values.empty()) return {{std::nullopt}, "it has no values; allowed: numbers"};
    for (const auto& value : payload.values) {
      const auto limit = !value             ? Result<double>(wrong("a value is not a number", "numbers"))
                         : type == "SIMPLE" ? level(*value)
                                            : power(type, *value);
      if (!limit && result.why.empty()) result.why = limit.error().message;
      result.limits_w.push_back(limit ? std::optional(*limit) : std::nullopt);
    }
    if (type == "SIMPLE" && !has_levels(settings_) && !result.why.empty()) return no_watts(result.why);
    return result;
  }

 private:
  static PayloadWatts no_watts(std::string why) { return {{}, std::move(why), true}; }
  static Error wrong(const std::string& what, const std::string& allowed) {
    return {ErrorCode::invalid_input, what + "; allowed: " + allowed};
  }
  Result<double> level(double value) const {
    if (value == 0) return kForever;
    for (int level = 1; level < kLevels; ++level) {
      if (value != level) continue;
      if (const auto& watts = settings_.levels[level]) return watts->value();
      return wrong(fmt::format("no watts for level {} are configured", level), fmt::format("with --level {}=W", level));
    }
    return wrong(fmt::format("level {}", value), "0, 1, 2 or 3");
  }
  Result<double> power(const std::string& type, double value) const {
    const bool relative = type == "DISPATCH_SETPOINT_RELATIVE";
    const std::string written = unit_of(type), unit = upper(written);
    double watts = 0;
    if (unit == "PERCENT" && relative) {
      if (!(std::abs(value) <= 1)) return wrong(fmt::format("{} PERCENT", value), "-1 to 1, so -0.2 for 20 % less");
      watts = value * settings_.baseline->value();
    } else if (unit == "W" || unit == "KW" || unit == "MW" || unit.empty()) {
      watts = value * (unit == "W" ? 1 : unit == "MW" ? 1e6 : 1e3);
    } else {
      return wrong(fmt::format("its unit is '{}'", written), relative ? "KW, W, MW or PERCENT" : "KW, W or MW");
    }
    if (relative) watts = std::max(0.0, watts + settings_.baseline->value());
    if (!(watts >= 0 && watts <= kMostWatts)) return wrong(fmt::format("{} W", watts), "0 to 1e12 W");
    return watts;
  }
  std::string unit_of(const std::string& type) const {
    for (const PayloadUnits* units : {&event_.units, &units_}) {
      if (const auto found = units->find(type); found != units->end()) return found->second;
    }
    return {};
  }

  const GridEvent& event_;
  const PayloadUnits& units_;
  const FollowSettings& settings_;
};

struct EventParts {
  std::vector<LimitPart> parts;
  std::vector<NotFollowed> not_followed, unread;

  static void name(NotFollowed one, std::vector<NotFollowed>& reasons) {
    if (std::ranges::find(reasons, one.key, &NotFollowed::key) != reasons.end()) return;
    if (reasons.size() < kMostReasons) reasons.push_back(std::move(one));
  }
};

EventParts parts_of(const GridEvent& event, const std::vector<PlacedInterval>& intervals, const PayloadUnits& units,
                    const FollowSettings& settings) {
  EventParts result;
  const PayloadLimits reader(event, units, settings);
  for (const PlacedInterval& placed : intervals) {
    if (!(placed.from_s < placed.to_s)) continue;
    const EventInterval& interval = event.intervals[placed.interval];
    if (!interval.unread.empty()) {
      result.parts.push_back({placed.from_s, placed.to_s, LimitKind::kept, kForever});
      EventParts::name({fmt::format("{} {}", event.id, interval.unread),
                        fmt::format("{}: payloads cannot be read: {}", name_of(event), interval.unread)},
                       result.unread);
    }
    for (const EventPayload& payload : interval.payloads) {
      if (!settings.signal.empty() && payload.type == settings.signal) continue;
      const auto kind = kind_of(payload.type);
      if (!kind) {
        EventParts::name({payload.type, fmt::format("{}: payload {} is not followed; allowed: {}", name_of(event),
                                                    payload.type, kFollowed)},
                         result.not_followed);
        continue;
      }
      const PayloadWatts watts = reader.limits_of(payload);
      if (!watts.limits_w.empty()) add_parts(placed, *kind, watts.limits_w, result.parts);
      if (watts.why.empty()) continue;
      EventParts::name({fmt::format("{} {} {}", event.id, payload.type, watts.why),
                        fmt::format("{}: payload {} is not followed: {}", name_of(event), payload.type, watts.why)},
                       watts.by_settings ? result.not_followed : result.unread);
    }
  }
  return result;
}

/// Repeats the parts of an event from `begin_s` on, each `cycle_s` later, until `end_s`.
class SpanMaker {
 public:
  SpanMaker(const SpanWindow& window, int priority, std::vector<LimitSpan>& spans)
      : window_(window), priority_(priority), spans_(spans) {}

  void once(const std::vector<LimitPart>& parts, double end_s) { cycle(parts, 0, end_s); }

  void repeatedly(const std::vector<LimitPart>& parts, double begin_s, double cycle_s, double end_s) {
    if (cycle_s < kShortestCycle_s) return replace(parts, begin_s, end_s);
    const double until_s = std::min(end_s, window_.repeats_until_s);
    double count = std::max(0.0, std::floor((window_.now_s - begin_s) / cycle_s));
    for (; begin_s + count * cycle_s < until_s; ++count) {
      if (!cycle(parts, count * cycle_s, end_s)) return;
    }
    replace(parts, begin_s + count * cycle_s, end_s);
  }

 private:
  /// False if there were too many.
  bool cycle(const std::vector<LimitPart>& parts, double later_s, double end_s) {
    for (const LimitPart& part : parts) {
      const double from_s = part.from_s + later_s;
      const double to_s = std::min(part.to_s + later_s, end_s);
      if (!(from_s < to_s) || to_s <= window_.now_s) continue;
      if (spans_.size() >= window_.most_spans) {
        replace(parts, from_s, end_s);
        return false;
      }
      spans_.push_back({from_s, to_s, part.kind, priority_, part.limit_w});
    }
    return true;
  }
  void replace(const std::vector<LimitPart>& parts, double from_s, double end_s) {
    if (!(from_s < end_s) || end_s <= window_.now_s) return;
    std::array<std::optional<double>, kLimitKinds> least;
    for (const LimitPart& part : parts) {
      if (part.kind == LimitKind::signal) continue;
      auto& limit = least[static_cast<std::size_t>(part.kind)];
      limit = std::min(limit.value_or(kForever), part.limit_w);
    }
    for (int kind = 0; kind < kLimitKinds; ++kind) {
      if (least[kind]) spans_.push_back({from_s, end_s, static_cast<LimitKind>(kind), priority_, *least[kind]});
    }
  }

  const SpanWindow& window_;
  int priority_;
  std::vector<LimitSpan>& spans_;
};

}  // namespace

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

bool limits_power(std::string_view type) { return kind_of(type).has_value(); }

bool is_followed(std::string_view type, const FollowSettings& settings) {
  if (type == "ALERT_GRID_EMERGENCY") return settings.emergency.has_value();
  if (type == "DISPATCH_SETPOINT_RELATIVE") return settings.baseline.has_value();
  if (type == "SIMPLE") return has_levels(settings);
  return limits_power(type);
}

Result<std::vector<PlacedInterval>> place_intervals(const GridEvent& event, double now_means_s,
                                                    const std::function<double(std::size_t)>& shift) {
  std::vector<PlacedInterval> placed;
  double shifted_s = 0;
  for (std::size_t i = 0; i < event.intervals.size(); ++i) {
    const EventPeriod& own = event.intervals[i].period;
    const auto& randomize = own.randomize || i > 0 ? own.randomize : event.period.randomize;
    if (randomize) shifted_s = shift(i) * (end_of(0, *randomize));
    if (!std::isfinite(shifted_s)) return Error{ErrorCode::invalid_input, "randomizeStart never ends"};
    double from_s = 0;
    if (own.has_start && own.start_s) {
      from_s = *own.start_s + shifted_s;
    } else if (i > 0) {
      from_s = placed.back().to_s;
    } else {
      from_s = (event.period.has_start && event.period.start_s ? *event.period.start_s : now_means_s) + shifted_s;
    }
    const auto& duration = own.duration ? own.duration : event.period.duration;
    if (!duration) {
      return Error{ErrorCode::invalid_input, fmt::format("interval {} has no duration", event.intervals[i].id)};
    }
    placed.push_back({from_s, end_of(from_s, *duration), i});
  }
  return placed;
}

SpanWindow::SpanWindow(double from_s, std::size_t most, std::size_t events)
    : now_s(from_s),
      repeats_until_s((std::ceil(from_s / kSecondsPerDay) + kRepeatedDays) * kSecondsPerDay),
      most_spans(most / std::max<std::size_t>(1, events)) {}

void add_parts(const PlacedInterval& placed, LimitKind kind, const std::vector<std::optional<double>>& limits,
               std::vector<LimitPart>& parts) {
  const auto add = [&](double from_s, double to_s, const std::optional<double>& limit_w) {
    parts.push_back({from_s, to_s, limit_w ? kind : LimitKind::kept, limit_w.value_or(kForever)});
  };
  if (placed.to_s == kForever) {
    for (const auto& limit_w : limits) add(placed.from_s, placed.to_s, limit_w);
    return;
  }
  const double length = (placed.to_s - placed.from_s) / static_cast<double>(limits.size());
  for (std::size_t k = 0; k < limits.size(); ++k) {
    const double to_s = k + 1 == limits.size() ? placed.to_s : placed.from_s + length * static_cast<double>(k + 1);
    add(placed.from_s + length * static_cast<double>(k), to_s, limits[k]);
  }
}

std::vector<LimitSpan> repeated(const GridEvent& event, const std::vector<PlacedInterval>& intervals,
                                std::vector<LimitPart> parts, const SpanWindow& window) {
  std::vector<LimitSpan> spans;
  if (parts.empty()) return spans;
  std::ranges::stable_sort(parts, {}, &LimitPart::from_s);
  double begin_s = kForever, end_s = -kForever;
  for (const PlacedInterval& placed : intervals) {
    begin_s = std::min(begin_s, placed.from_s);
    end_s = std::max(end_s, placed.to_s);
  }
  const double cycle_s = end_s - begin_s;
  if (event.duration) end_s = end_of(begin_s, *event.duration);
  const int priority = event.priority.value_or(std::numeric_limits<int>::max());
  SpanMaker maker(window, priority, spans);
  if (end_s - begin_s > cycle_s) {
    maker.repeatedly(parts, begin_s, cycle_s, end_s);
  } else {
    maker.once(parts, end_s);
  }
  return spans;
}

EventSpans spans_of(const GridEvent& event, const std::vector<PlacedInterval>& intervals, const PayloadUnits& units,
                    const FollowSettings& settings, const SpanWindow& window) {
  EventParts parts = parts_of(event, intervals, units, settings);
  return {repeated(event, intervals, std::move(parts.parts), window), std::move(parts.not_followed),
          std::move(parts.unread)};
}

void sweep_spans(const std::vector<LimitSpan>& spans, double now_s,
                 const std::function<void(double at_s, const ActiveLimits& active)>& visit) {
  struct Edge {
    double at_s;
    bool begins;
    const LimitSpan* span;
  };
  std::vector<Edge> edges;
  edges.reserve(2 * spans.size());
  for (const LimitSpan& span : spans) {
    edges.push_back({std::max(span.from_s, now_s), true, &span});
    if (span.to_s < kForever) edges.push_back({span.to_s, false, &span});
  }
  std::ranges::sort(edges, {}, &Edge::at_s);
  ActiveLimits active;
  double at_s = now_s;
  for (auto edge = edges.begin();; at_s = edge->at_s) {
    for (; edge != edges.end() && edge->at_s <= at_s; ++edge) {
      edge->begins ? active.begin(*edge->span) : active.end(*edge->span);
    }
    visit(at_s, active);
    if (edge == edges.end()) return;
  }
}

}  // namespace perseus::openadr
