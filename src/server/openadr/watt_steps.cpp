#include "server/openadr/watt_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

namespace perseus::openadr {
namespace {

constexpr double kRepeatedDays = 7;
constexpr std::size_t kMostSpans = 200'000;

/// The limits that hold at one moment of a sweep over time.
class ActiveLimits {
 public:
  explicit ActiveLimits(const FollowSettings& settings) : settings_(settings) {}

  void begin(const LimitSpan& span) { of(span.kind).emplace(span.priority, span.limit_w); }
  void end(const LimitSpan& span) {
    auto& limits = of(span.kind);
    limits.erase(limits.find({span.priority, span.limit_w}));
  }
  /// In watts; infinity: none.
  [[nodiscard]] double limit_w() const {
    double least = kForever;
    for (const LimitKind kind : {LimitKind::setpoint, LimitKind::level, LimitKind::alert}) {
      if (!of(kind).empty()) least = std::min(least, of(kind).begin()->second);
    }
    for (const LimitKind kind : {LimitKind::capacity, LimitKind::subscription}) {
      if (!of(kind).empty()) return std::min(least, of(kind).begin()->second);
    }
    return settings_.default_limit ? std::min(least, settings_.default_limit->value()) : least;
  }

 private:
  using Limits = std::multiset<std::pair<int, double>>;  ///< priority, watts: the first one holds
  Limits& of(LimitKind kind) { return limits_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const Limits& of(LimitKind kind) const { return limits_[static_cast<std::size_t>(kind)]; }

  const FollowSettings& settings_;
  std::array<Limits, kLimitKinds> limits_;
};

std::optional<Watts> limit_of(double limit_w) {
  return limit_w < kForever ? std::optional(Watts(limit_w)) : std::nullopt;
}

std::vector<WattStep> sweep(const std::vector<LimitSpan>& spans, const FollowSettings& settings, double now_s) {
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
  ActiveLimits active(settings);
  std::vector<WattStep> steps;
  double at_s = now_s;
  for (auto edge = edges.begin();;) {
    for (; edge != edges.end() && edge->at_s <= at_s; ++edge) {
      if (edge->begins) {
        active.begin(*edge->span);
      } else {
        active.end(*edge->span);
      }
    }
    const auto limit = limit_of(active.limit_w());
    if (steps.empty() || steps.back().limit != limit) steps.push_back({at_s, limit});
    if (edge == edges.end()) return steps;
    at_s = edge->at_s;
  }
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

Result<std::vector<PlacedInterval>> placed(const SeenEvent& seen, const std::string& seed) {
  return place_intervals(seen.event, seen.now_means_s,
                         [&](std::size_t interval) { return random_shift(seed, seen.event.id, interval); });
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

}  // namespace

FollowedSchedule watt_steps(std::span<const SeenEvent> events, const std::map<std::string, PayloadUnits>& program_units,
                            const FollowSettings& settings, const std::string& seed, double now_s) {
  FollowedSchedule result;
  SpanWindow window;
  window.now_s = now_s;
  window.repeats_until_s = (std::ceil(now_s / kSecondsPerDay) + kRepeatedDays) * kSecondsPerDay;
  window.most_spans = kMostSpans / std::max<std::size_t>(1, events.size());
  std::vector<LimitSpan> spans;
  for (const SeenEvent& seen : events) {
    const auto intervals = placed(seen, seed);
    if (!intervals) {
      result.not_followed.push_back({seen.event.id + " " + intervals.error().message,
                                     fmt::format("event {} ({}) is not followed: {}", seen.event.id, seen.event.name,
                                                 intervals.error().message)});
      continue;
    }
    if (end_of_placed(seen.event, *intervals) <= now_s) continue;
    const auto units = program_units.find(seen.event.program);
    static const PayloadUnits none;
    EventSpans one =
        spans_of(seen.event, *intervals, units == program_units.end() ? none : units->second, settings, window);
    spans.insert(spans.end(), one.spans.begin(), one.spans.end());
    std::ranges::move(one.not_followed, std::back_inserter(result.not_followed));
  }
  result.steps = sweep(spans, settings, now_s);
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
  const auto intervals = placed(seen, seed);
  return intervals ? end_of_placed(seen.event, *intervals) : kForever;
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
