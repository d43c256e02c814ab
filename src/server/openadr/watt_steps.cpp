#include "server/openadr/watt_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace perseus::openadr {
namespace {

constexpr int kKeptPriority = 0;  // of all that is kept: the least of it holds
constexpr std::size_t kMostSpans = 200'000;

/// In watts; infinity: none.
double limit_under(const ActiveLimits& active, const FollowSettings& settings) {
  double least = kForever;
  for (const LimitKind kind : {LimitKind::setpoint, LimitKind::level, LimitKind::alert, LimitKind::kept}) {
    least = std::min(least, active.least(kind).value_or(kForever));
  }
  for (const LimitKind kind : {LimitKind::capacity, LimitKind::subscription}) {
    if (const auto limit_w = active.least(kind)) return std::min(least, *limit_w);
  }
  return settings.default_limit ? std::min(least, settings.default_limit->value()) : least;
}

std::optional<Watts> limit_of(double limit_w) {
  return limit_w < kForever ? std::optional(Watts(limit_w)) : std::nullopt;
}

std::vector<WattStep> sweep(const std::vector<LimitSpan>& spans, const FollowSettings& settings, double now_s) {
  std::vector<WattStep> steps;
  sweep_spans(spans, now_s, [&](double at_s, const ActiveLimits& active) {
    const auto limit = limit_of(limit_under(active, settings));
    if (steps.empty() || steps.back().limit != limit) steps.push_back({at_s, limit});
  });
  return steps;
}

void keep_at_most(std::size_t count, std::vector<WattStep>& steps) {
  if (steps.size() <= count || count == 0) return;
  const auto least = std::min_element(steps.begin() + static_cast<std::ptrdiff_t>(count) - 1, steps.end(),
                                      [](const WattStep& a, const WattStep& b) {
                                        return a.limit.value_or(Watts(kForever)) < b.limit.value_or(Watts(kForever));
                                      });
  steps[count - 1].limit = least->limit;
  steps.resize(count);
  if (count > 1 && steps[count - 2].limit == steps[count - 1].limit) steps.pop_back();
}

Result<std::vector<PlacedInterval>> placed(const GridEvent& event, double now_means_s, const std::string& seed) {
  return place_intervals(event, now_means_s,
                         [&](std::size_t interval) { return random_shift(seed, event.id, interval); });
}

double end_of_placed(const GridEvent& event, const std::vector<PlacedInterval>& intervals) {
  double begin_s = kForever, end_s = -kForever;
  for (const PlacedInterval& interval : intervals) {
    begin_s = std::min(begin_s, interval.from_s);
    end_s = std::max(end_s, interval.to_s);
  }
  if (event.duration && !intervals.empty()) return end_of(begin_s, *event.duration);
  return end_s;
}

bool limits_power(const GridEvent& event) {
  return std::ranges::any_of(event.intervals, [](const EventInterval& interval) {
    return !interval.unread.empty() || std::ranges::any_of(interval.payloads, [](const EventPayload& payload) {
      return openadr::limits_power(payload.type);
    });
  });
}

std::string sentence_on(const SeenEvent& seen, const std::string& why) {
  const std::string& name = seen.update ? seen.update->event.name : seen.event.name;
  return fmt::format("event {}{} cannot be read: {}", seen.event.id.empty() ? "without an id" : seen.event.id,
                     name.empty() ? "" : fmt::format(" ({})", name), why);
}

/// Collects the spans of events.
class SpanCollector {
 public:
  SpanCollector(const std::map<std::string, PayloadUnits>& program_units, const FollowSettings& settings,
                const std::string& seed, const KnownLimits& known, const SpanWindow& window, FollowedSchedule& result)
      : program_units_(program_units),
        settings_(settings),
        seed_(seed),
        known_(known),
        window_(window),
        result_(result) {}

  void add(const SeenEvent& seen) {
    if (seen.update) add_update(seen);  // its reason comes first
    add_version(seen, seen.event, seen.now_means_s, false);
  }
  [[nodiscard]] std::vector<WattStep> steps() const { return sweep(spans_, settings_, window_.now_s); }

 private:
  void add_version(const SeenEvent& seen, const GridEvent& event, double now_means_s, bool is_update) {
    const auto intervals = placed(event, now_means_s, seed_);
    if (!intervals) {
      if (!limits_power(event)) return skip(seen, intervals.error().message);
      unread(seen, sentence_on(seen, intervals.error().message));
      return keep(event.id, -kForever, kForever);
    }
    if (end_of_placed(event, *intervals) <= window_.now_s) return;
    const auto units = program_units_.find(event.program);
    static const PayloadUnits none;
    EventSpans one =
        spans_of(event, *intervals, units == program_units_.end() ? none : units->second, settings_, window_);
    for (const LimitSpan& span : one.spans) {
      if (span.kind == LimitKind::kept) {
        keep(event.id, span.from_s, span.to_s);
      } else if (!is_update) {
        spans_.push_back(span);
      } else if (span.limit_w < kForever) {
        spans_.push_back({span.from_s, span.to_s, LimitKind::kept, kKeptPriority, span.limit_w});
      }
    }
    std::ranges::move(one.not_followed, std::back_inserter(result_.not_followed));
    if (!one.unread.empty()) unread(seen, one.unread.front().text);
  }
  void add_update(const SeenEvent& seen) {
    const auto& [event, now_means_s] = *seen.update;
    const UnreadPart& part = *event.unread;
    if (!part.may_limit && !limits_power(seen.event)) return skip(seen, part.why);
    double from_s = -kForever, to_s = kForever;
    const auto intervals = placed(event, now_means_s, seed_);
    if (part.has_times && intervals) {
      to_s = end_of_placed(event, *intervals);
      from_s = kForever;
      for (const PlacedInterval& interval : *intervals) from_s = std::min(from_s, interval.from_s);
    }
    if (to_s <= window_.now_s) return skip(seen, part.why);
    unread(seen, sentence_on(seen, part.why));
    keep(event.id, from_s, to_s);
    add_version(seen, event, now_means_s, true);
  }
  void keep(const std::string& id, double from_s, double to_s) {
    const auto known = known_.find(id);
    const double limit_w = known == known_.end() ? kForever : least_limit(known->second, from_s, to_s);
    if (limit_w < kForever) spans_.push_back({from_s, to_s, LimitKind::kept, kKeptPriority, limit_w});
  }
  void unread(const SeenEvent& seen, std::string text) {
    const std::string& id = seen.event.id;
    if (result_.unread.empty() || result_.unread.back().id != id) result_.unread.push_back({id, std::move(text)});
  }
  void skip(const SeenEvent& seen, const std::string& why) {
    result_.not_followed.push_back({seen.event.id + " " + why, sentence_on(seen, why)});
  }

  const std::map<std::string, PayloadUnits>& program_units_;
  const FollowSettings& settings_;
  const std::string& seed_;
  const KnownLimits& known_;
  const SpanWindow& window_;
  FollowedSchedule& result_;
  std::vector<LimitSpan> spans_;
};

}  // namespace

FollowedSchedule watt_steps(std::span<const SeenEvent> events, const std::map<std::string, PayloadUnits>& program_units,
                            const FollowSettings& settings, const std::string& seed, double now_s,
                            const KnownLimits& known) {
  FollowedSchedule result;
  const SpanWindow window(now_s, kMostSpans, events.size());
  SpanCollector collector(program_units, settings, seed, known, window, result);
  for (const SeenEvent& seen : events) collector.add(seen);
  result.steps = collector.steps();
  keep_at_most(settings.most_steps, result.steps);
  return result;
}

double random_shift(const std::string& seed, const std::string& event, std::size_t interval) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char byte : fmt::format("{}\n{}\n{}", seed, event, interval)) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  }
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdULL;  // spreads it over all bits
  hash ^= hash >> 33U;
  constexpr double two_to_52 = 4503599627370496.0;
  return static_cast<double>(hash >> 11U) / two_to_52 - 1;
}

double end_of_event(const SeenEvent& seen, const std::string& seed) {
  const auto end_of_version = [&](const GridEvent& event, double now_means_s) {
    const auto intervals = placed(event, now_means_s, seed);
    return intervals ? end_of_placed(event, *intervals) : kForever;
  };
  const double end_s = end_of_version(seen.event, seen.now_means_s);
  if (!seen.update) return end_s;
  if (!seen.update->event.unread->has_times) return kForever;
  return std::max(end_s, end_of_version(seen.update->event, seen.update->now_means_s));
}

double least_limit(const std::vector<WattStep>& steps, double from_s, double to_s) {
  double within_w = kForever, ever_w = kForever;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const double limit_w = steps[k].limit.value_or(Watts(kForever)).value();
    ever_w = std::min(ever_w, limit_w);
    const bool begins_later = steps[k].from_s >= to_s;
    const bool ended = k + 1 < steps.size() && steps[k + 1].from_s <= from_s;
    if (!begins_later && !ended) within_w = std::min(within_w, limit_w);
  }
  return within_w < kForever ? within_w : ever_w;
}

std::vector<WattStep> steps_from(double now_s, std::vector<WattStep> steps) {
  std::size_t passed = 0;
  while (passed + 1 < steps.size() && steps[passed + 1].from_s <= now_s) ++passed;
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(passed));
  if (!steps.empty()) steps.front().from_s = std::max(steps.front().from_s, now_s);
  return steps;
}

bool same_from(double now_s, const std::vector<WattStep>& a, const std::vector<WattStep>& b) {
  return steps_from(now_s, a) == steps_from(now_s, b);
}

}  // namespace perseus::openadr
