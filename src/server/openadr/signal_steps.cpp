#include "server/openadr/signal_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace perseus::openadr {
namespace {

constexpr double kMostValue = 1e9;

Error refused(std::string text) { return {ErrorCode::invalid_input, std::move(text)}; }

Result<double> per_kwh(const std::string& payload, const GridEvent& event, const PayloadUnits& program_units) {
  std::string unit;
  for (const PayloadUnits* units : {&program_units, &event.units}) {
    if (const auto found = units->find(payload); found != units->end()) unit = found->second;
  }
  const bool is_price = payload == "PRICE";
  const std::string as_known = upper(unit);
  if (unit.empty() || as_known == (is_price ? "KWH" : "GHG")) return 1;
  if (is_price && as_known == "MWH") return 1e-3;
  return refused(fmt::format("its unit is '{}'; allowed: {}", unit, is_price ? "KWH or MWH" : "GHG"));
}

/// Or why there are none.
Result<std::vector<LimitPart>> parts_of(const std::string& type, const GridEvent& event,
                                        const std::vector<PlacedInterval>& placed, const PayloadUnits& program_units) {
  const auto factor = per_kwh(type, event, program_units);
  if (!factor) return factor.error();
  std::vector<LimitPart> parts;
  for (const PlacedInterval& one : placed) {
    for (const EventPayload& payload : event.intervals[one.interval].payloads) {
      if (payload.type != type) continue;
      std::vector<std::optional<double>> values;
      for (const auto& value : payload.values) {
        if (!value || std::abs(*value) > kMostValue) return refused("a value is not a number within 1e9");
        values.emplace_back(-*value * *factor);
      }
      if (values.empty()) return refused("it has no values; allowed: numbers");
      add_parts(one, LimitKind::signal, values, parts);
    }
  }
  return parts;
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
  const SpanWindow window(now_s, kMostSignalSpans, events.size());
  std::vector<LimitSpan> spans;
  static const PayloadUnits none;
  for (const SeenEvent& seen : events) {
    if (!has_payload(seen.event, payload)) continue;
    const auto units = program_units.find(seen.event.program);
    const auto placed = place_intervals(seen.event, seen.now_means_s, [&](std::size_t interval) {
      return random_shift(seed, seen.event.id, interval);
    });
    auto parts = placed ? parts_of(payload, seen.event, *placed, units == program_units.end() ? none : units->second)
                        : Result<std::vector<LimitPart>>(placed.error());
    if (parts) {
      std::ranges::move(repeated(seen.event, *placed, *std::move(parts), window), std::back_inserter(spans));
      continue;
    }
    const std::string text = fmt::format("event {} ({}): payload {} is not followed: {}", seen.event.id,
                                         seen.event.name, payload, parts.error().message);
    result.not_followed.push_back({text, text});
  }
  std::vector<SignalStep>& steps = result.steps;
  sweep_spans(spans, now_s, [&](double at_s, const ActiveLimits& active) {
    if (steps.size() >= kMostSignalSteps) return;
    std::optional<double> value = active.least(LimitKind::signal);
    if (value) value = -*value;
    if (steps.size() + 1 == kMostSignalSteps) value.reset();
    if (steps.empty() || steps.back().value != value) steps.push_back({at_s, value});
  });
  return result;
}

}  // namespace perseus::openadr
