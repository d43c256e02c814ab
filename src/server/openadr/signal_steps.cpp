#include "server/openadr/signal_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace perseus::openadr {
namespace {

constexpr double kSignalDays = 7, kShortestRepetition_s = 1, kMostValue = 1e9;

struct SignalSpan {
  double from_s, to_s;
  int priority;
  double value;
};

/// Of one event.
class SignalReader {
 public:
  SignalReader(const std::string& payload, double now_s, double until_s, std::size_t most)
      : payload_(payload), now_s_(now_s), until_s_(until_s), most_(most) {}

  /// Adds the spans of an event, or says why there are none.
  Status add(const GridEvent& event, const std::vector<PlacedInterval>& placed, const PayloadUnits& program_units,
             std::vector<SignalSpan>& spans) const {
    const auto factor = per_kwh(event, program_units);
    if (!factor) return factor.error();
    const int priority = event.priority.value_or(std::numeric_limits<int>::max());
    std::vector<SignalSpan> parts;
    for (const PlacedInterval& one : placed) {
      for (const EventPayload& payload : event.intervals[one.interval].payloads) {
        if (payload.type != payload_) continue;
        if (Status read = add_parts_of(payload, one, priority, *factor, parts); !read) return read;
      }
    }
    repeat(event, placed, parts, spans);
    return Ok{};
  }

 private:
  static Error wrong(std::string text) { return {ErrorCode::invalid_input, std::move(text)}; }
  Result<double> per_kwh(const GridEvent& event, const PayloadUnits& program_units) const {
    std::string unit;
    for (const PayloadUnits* units : {&program_units, &event.units}) {
      if (const auto found = units->find(payload_); found != units->end()) unit = found->second;
    }
    const bool is_price = payload_ == "PRICE";
    const std::string as_known = upper(unit);
    if (unit.empty() || as_known == (is_price ? "KWH" : "GHG")) return 1;
    if (is_price && as_known == "MWH") return 1e-3;
    return wrong(fmt::format("its unit is '{}'; allowed: {}", unit, is_price ? "KWH or MWH" : "GHG"));
  }
  Status add_parts_of(const EventPayload& payload, const PlacedInterval& placed, int priority, double factor,
                      std::vector<SignalSpan>& parts) const {
    std::vector<double> values;
    for (const auto& value : payload.values) {
      if (!value || std::abs(*value) > kMostValue) return wrong("a value is not a number within 1e9");
      values.push_back(*value * factor);
    }
    if (values.empty()) return wrong("it has no values; allowed: numbers");
    if (placed.to_s == kForever) values = {*std::ranges::max_element(values)};
    const double length_s = (placed.to_s - placed.from_s) / static_cast<double>(values.size());
    double from_s = placed.from_s;
    for (std::size_t k = 0; k < values.size() && parts.size() < most_; ++k) {
      const bool is_last = k + 1 == values.size();
      const double to_s = is_last ? placed.to_s : placed.from_s + length_s * static_cast<double>(k + 1);
      parts.push_back({from_s, to_s, priority, values[k]});
      from_s = to_s;
    }
    return Ok{};
  }
  void repeat(const GridEvent& event, const std::vector<PlacedInterval>& placed, const std::vector<SignalSpan>& parts,
              std::vector<SignalSpan>& spans) const {
    double begin_s = kForever, end_s = -kForever;
    for (const PlacedInterval& one : placed) {
      begin_s = std::min(begin_s, one.from_s);
      end_s = std::max(end_s, one.to_s);
    }
    const double cycle_s = end_s - begin_s;
    if (event.duration) end_s = end_of(begin_s, *event.duration);
    const bool repeats = end_s - begin_s > cycle_s && cycle_s >= kShortestRepetition_s;
    const double last_s = std::min(end_s, until_s_);
    double count = repeats ? std::max(0.0, std::floor((now_s_ - begin_s) / cycle_s)) : 0;
    std::size_t left = most_;
    do {
      const double later_s = repeats ? count * cycle_s : 0;
      for (const SignalSpan& part : parts) {
        const double from_s = part.from_s + later_s, to_s = std::min(part.to_s + later_s, end_s);
        if (!(from_s < to_s) || to_s <= now_s_ || left == 0) continue;
        spans.push_back({from_s, to_s, part.priority, part.value});
        --left;
      }
      ++count;
    } while (repeats && left > 0 && !parts.empty() && begin_s + count * cycle_s < last_s);
  }

  const std::string& payload_;
  double now_s_, until_s_;
  std::size_t most_;
};

/// At each moment the span with the highest priority, then the greatest value.
std::vector<SignalStep> sweep_signal(const std::vector<SignalSpan>& spans, double now_s) {
  std::vector<std::pair<double, const SignalSpan*>> begins, ends;
  for (const SignalSpan& span : spans) {
    begins.emplace_back(std::max(span.from_s, now_s), &span);
    if (span.to_s < kForever) ends.emplace_back(span.to_s, &span);
  }
  std::ranges::sort(begins);
  std::ranges::sort(ends);
  std::multiset<std::pair<int, double>> active;  // priority, negative value: the first one holds
  std::vector<SignalStep> steps;
  auto begin = begins.begin();
  auto end = ends.begin();
  for (double at_s = now_s; std::isfinite(at_s);) {
    for (; begin != begins.end() && begin->first <= at_s; ++begin) {
      active.emplace(begin->second->priority, -begin->second->value);
    }
    for (; end != ends.end() && end->first <= at_s; ++end) {
      active.erase(active.find({end->second->priority, -end->second->value}));
    }
    std::optional<double> value;
    if (!active.empty()) value = -active.begin()->second;
    if (steps.size() + 1 >= kMostSignalSteps) value.reset();
    if (steps.empty() || steps.back().value != value) steps.push_back({at_s, value});
    if (steps.size() >= kMostSignalSteps) break;
    at_s = std::min(begin == begins.end() ? kForever : begin->first, end == ends.end() ? kForever : end->first);
  }
  return steps;
}

bool has_payload(const GridEvent& event, const std::string& payload) {
  return std::ranges::any_of(event.intervals, [&](const EventInterval& interval) {
    return std::ranges::find(interval.payloads, payload, &EventPayload::type) != interval.payloads.end();
  });
}

}  // namespace

FollowedSignal signal_steps(std::span<const SeenEvent> events, const std::map<std::string, PayloadUnits>& program_units,
                            const std::string& payload, const std::string& seed, double now_s) {
  FollowedSignal result;
  const double until_s = (std::ceil(now_s / kSecondsPerDay) + kSignalDays) * kSecondsPerDay;
  const SignalReader reader(payload, now_s, until_s, kMostSignalSpans / std::max<std::size_t>(1, events.size()));
  std::vector<SignalSpan> spans;
  static const PayloadUnits none;
  for (const SeenEvent& seen : events) {
    if (!has_payload(seen.event, payload)) continue;
    const auto units = program_units.find(seen.event.program);
    const auto placed = place_intervals(seen.event, seen.now_means_s, [&](std::size_t interval) {
      return random_shift(seed, seen.event.id, interval);
    });
    const Status added =
        placed ? reader.add(seen.event, *placed, units == program_units.end() ? none : units->second, spans)
               : Status(placed.error());
    if (added) continue;
    const std::string text = fmt::format("event {} ({}): payload {} is not followed: {}", seen.event.id,
                                         seen.event.name, payload, added.error().message);
    result.not_followed.push_back({text, text});
  }
  result.steps = sweep_signal(spans, now_s);
  return result;
}

}  // namespace perseus::openadr
