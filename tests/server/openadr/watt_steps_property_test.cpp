// Step functions of random events against a slow evaluation at single moments.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "oracles/dice.h"
#include "server/openadr/watt_steps.h"

namespace perseus::openadr {
namespace {

using testing::Dice;
using testing::ShrinkingDice;

constexpr double kNow_s = 1'773'480'600;  // 2026-03-14T09:30:00Z
constexpr double kMinute_s = 60;
constexpr double kWatched_s = 2 * 86400;

IsoDuration minutes(int count) { return {0, count * kMinute_s, false}; }

EventPayload random_payload(Dice& dice) {
  static const std::vector<std::string> types = {"IMPORT_CAPACITY_LIMIT",
                                                 "IMPORT_CAPACITY_SUBSCRIPTION",
                                                 "DISPATCH_SETPOINT",
                                                 "DISPATCH_SETPOINT_RELATIVE",
                                                 "SIMPLE",
                                                 "ALERT_GRID_EMERGENCY",
                                                 "PRICE"};
  EventPayload payload{types[dice.roll(0, 6)], {}};
  const int count = dice.one_in(4) ? dice.roll(2, 3) : 1;
  for (int k = 0; k < count; ++k) payload.values.emplace_back(dice.roll(payload.type == "SIMPLE" ? 0 : 1, 3));
  return payload;
}

SeenEvent random_event(Dice& dice, int number) {
  GridEvent event;
  event.id = "event-" + std::to_string(number);
  if (!dice.one_in(3)) event.priority = dice.roll(0, 2);
  event.period.has_start = !dice.one_in(4);
  if (!dice.one_in(3)) event.period.start_s = kNow_s + dice.roll(-600, 600) * kMinute_s;
  if (!event.period.has_start) event.period.start_s.reset();
  event.period.duration = dice.one_in(8) ? IsoDuration{0, 0, true} : minutes(dice.roll(0, 120));
  if (dice.one_in(4)) event.period.randomize = minutes(dice.roll(0, 30));
  const int count = dice.roll(1, 4);
  for (int i = 0; i < count; ++i) {
    EventInterval& interval = event.intervals.emplace_back();
    interval.id = i;
    if (dice.one_in(4)) interval.period.duration = minutes(dice.roll(0, 60));
    if (dice.one_in(5)) {
      interval.period.has_start = true;
      interval.period.start_s = kNow_s + dice.roll(-600, 600) * kMinute_s;
    }
    if (dice.one_in(6)) interval.period.randomize = minutes(dice.roll(0, 30));
    const int payloads = dice.roll(0, 2);
    for (int p = 0; p < payloads; ++p) interval.payloads.push_back(random_payload(dice));
  }
  if (dice.one_in(3)) event.duration = dice.one_in(3) ? IsoDuration{0, 0, true} : minutes(dice.roll(0, 2000));
  return {event, kNow_s - dice.roll(0, 60) * kMinute_s};
}

std::vector<SeenEvent> random_events(Dice& dice) {
  std::vector<SeenEvent> events;
  const int count = dice.roll(0, 5);
  for (int e = 0; e < count; ++e) events.push_back(random_event(dice, e));
  return events;
}

FollowSettings random_settings(Dice& dice) {
  FollowSettings settings;
  settings.baseline = Watts(2500);
  settings.levels = {std::nullopt, Watts(2200), Watts(1400), std::nullopt};
  settings.emergency = Watts(700);
  if (dice.one_in(2)) settings.default_limit = Watts(2700);
  return settings;
}

/// An event that repeats each minute has more steps in two days than are kept; the last one kept stands for the rest.
FollowSettings uncut(FollowSettings settings) {
  settings.most_steps = 1'000'000;
  return settings;
}

/// Lengths of time that end, as seconds.
double length_s(const IsoDuration& duration) { return duration.never_ends ? kForever : duration.seconds; }

/// What one event asks for at one moment, per kind: the least limit, or nothing. Looks at every repetition in turn.
class MomentOfEvent {
 public:
  MomentOfEvent(const SeenEvent& seen, const FollowSettings& settings, double at_s)
      : event_(seen.event), settings_(settings), at_s_(at_s) {
    place(seen.now_means_s);
    double first_s = kForever, last_s = -kForever;
    for (const auto& [from_s, to_s] : places_) {
      first_s = std::min(first_s, from_s);
      last_s = std::max(last_s, to_s);
    }
    const double end_s = event_.duration ? first_s + length_s(*event_.duration) : last_s;
    if (at_s >= end_s) return;
    for (double later_s = 0; first_s + later_s <= at_s; later_s += last_s - first_s) {
      look(later_s);
      if (!(last_s > first_s) || last_s == kForever) break;
    }
  }
  std::array<std::optional<double>, kLimitKinds> least;

 private:
  void place(double now_means_s) {
    double shift_s = 0, before_s = 0;
    for (std::size_t i = 0; i < event_.intervals.size(); ++i) {
      const EventPeriod& own = event_.intervals[i].period;
      std::optional<IsoDuration> random = own.randomize;
      if (i == 0 && !random) random = event_.period.randomize;
      if (random) shift_s = random_shift("seed", event_.id, i) * random->seconds;
      double from_s = before_s;
      if (i == 0) from_s = event_.period.start_s.value_or(now_means_s) + shift_s;
      if (own.start_s) from_s = *own.start_s + shift_s;
      before_s = from_s + length_s(own.duration ? *own.duration : *event_.period.duration);
      places_.emplace_back(from_s, before_s);
    }
  }
  void look(double later_s) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const double from_s = places_[i].first + later_s, to_s = places_[i].second + later_s;
      if (at_s_ < from_s || at_s_ >= to_s) continue;
      for (const EventPayload& payload : event_.intervals[i].payloads) look(payload, at_s_ - from_s, to_s - from_s);
    }
  }
  void look(const EventPayload& payload, double passed_s, double length_s) {
    static const std::map<std::string, LimitKind> kinds = {{"IMPORT_CAPACITY_LIMIT", LimitKind::capacity},
                                                           {"IMPORT_CAPACITY_SUBSCRIPTION", LimitKind::subscription},
                                                           {"DISPATCH_SETPOINT", LimitKind::setpoint},
                                                           {"DISPATCH_SETPOINT_RELATIVE", LimitKind::setpoint},
                                                           {"SIMPLE", LimitKind::level},
                                                           {"ALERT_GRID_EMERGENCY", LimitKind::alert}};
    const auto kind = kinds.find(payload.type);
    if (kind == kinds.end()) return;
    const auto put_one = [&](double value) {  // level 3 is not configured: what cannot be read lifts no other limit
      if (payload.type != "SIMPLE" || value != 3) put(kind->second, limit_w(payload.type, value));
    };
    if (length_s == kForever) {
      for (const auto& value : payload.values) put_one(*value);
      return;
    }
    const auto part = static_cast<std::size_t>(passed_s / length_s * static_cast<double>(payload.values.size()));
    put_one(*payload.values[std::min(part, payload.values.size() - 1)]);
  }
  [[nodiscard]] double limit_w(const std::string& type, double value) const {
    if (type == "DISPATCH_SETPOINT_RELATIVE") return value * 1000 + settings_.baseline->value();
    if (type == "ALERT_GRID_EMERGENCY") return settings_.emergency->value();
    if (type != "SIMPLE") return value * 1000;
    return value == 0 ? kForever : settings_.levels[static_cast<std::size_t>(value)]->value();
  }
  void put(LimitKind kind, double limit_w) {
    auto& limit = least[static_cast<std::size_t>(kind)];
    limit = std::min(limit.value_or(kForever), limit_w);
  }

  const GridEvent& event_;
  const FollowSettings& settings_;
  double at_s_;
  std::vector<std::pair<double, double>> places_;
};

double slow_limit_w(const std::vector<SeenEvent>& events, const FollowSettings& settings, double at_s) {
  std::array<std::optional<std::pair<int, double>>, kLimitKinds> winners;
  for (const SeenEvent& seen : events) {
    const MomentOfEvent moment(seen, settings, at_s);
    for (int kind = 0; kind < kLimitKinds; ++kind) {
      if (!moment.least[kind]) continue;
      const std::pair one(seen.event.priority.value_or(1000), *moment.least[kind]);
      if (!winners[kind] || one < *winners[kind]) winners[kind] = one;
    }
  }
  const auto of = [&](LimitKind kind) {
    const auto& winner = winners[static_cast<std::size_t>(kind)];
    return winner ? std::optional(winner->second) : std::nullopt;
  };
  double limit_w = settings.default_limit ? settings.default_limit->value() : kForever;
  if (const auto subscribed = of(LimitKind::subscription)) limit_w = *subscribed;
  if (const auto capacity = of(LimitKind::capacity)) limit_w = *capacity;
  for (const LimitKind kind : {LimitKind::setpoint, LimitKind::level, LimitKind::alert}) {
    limit_w = std::min(limit_w, of(kind).value_or(kForever));
  }
  return limit_w;
}

double limit_at(const std::vector<WattStep>& steps, double at_s) {
  const auto limit = steps_from(at_s, steps).front().limit;
  return limit ? limit->value() : kForever;
}

/// At least a second from every step: there rounding may decide.
bool is_clear(const std::vector<WattStep>& steps, double at_s) {
  return std::ranges::all_of(steps, [&](const WattStep& step) { return std::abs(step.from_s - at_s) > 1; });
}

RC_GTEST_PROP(WattStepsProperty, EqualTheSlowEvaluationAtEveryMoment, ()) {
  ShrinkingDice dice;
  const std::vector<SeenEvent> events = random_events(dice);
  const FollowSettings settings = uncut(random_settings(dice));
  const auto schedule = watt_steps(events, {}, settings, "seed", kNow_s);
  for (int k = 0; k < 40; ++k) {
    const double at_s = kNow_s + dice.roll(0, static_cast<int>(kWatched_s));
    if (!is_clear(schedule.steps, at_s)) continue;
    const double slow_w = slow_limit_w(events, settings, at_s), fast_w = limit_at(schedule.steps, at_s);
    if (slow_w != fast_w)
      RC_FAIL(std::to_string(at_s - kNow_s) + " s: " + std::to_string(slow_w) + " expected, not " +
              std::to_string(fast_w));
  }
}

RC_GTEST_PROP(WattStepsProperty, BeginNowAscendAndDiffer, ()) {
  ShrinkingDice dice;
  const std::vector<SeenEvent> events = random_events(dice);
  FollowSettings settings = random_settings(dice);
  settings.most_steps = dice.roll(1, 30);
  const auto steps = watt_steps(events, {}, settings, "seed", kNow_s).steps;
  RC_ASSERT(!steps.empty() && steps.size() <= settings.most_steps);
  RC_ASSERT(steps.front().from_s == kNow_s);
  for (std::size_t k = 1; k < steps.size(); ++k) {
    RC_ASSERT(steps[k - 1].from_s < steps[k].from_s);
    RC_ASSERT(steps[k - 1].limit != steps[k].limit);
  }
}

RC_GTEST_PROP(WattStepsProperty, CutStepsNeverRaiseALimit, ()) {
  ShrinkingDice dice;
  const std::vector<SeenEvent> events = random_events(dice);
  FollowSettings settings = random_settings(dice);
  const auto all = watt_steps(events, {}, settings, "seed", kNow_s).steps;
  settings.most_steps = dice.roll(1, 10);
  const auto cut = watt_steps(events, {}, settings, "seed", kNow_s).steps;
  for (const WattStep& step : all) RC_ASSERT(limit_at(cut, step.from_s) <= limit_at(all, step.from_s));
}

RC_GTEST_PROP(WattStepsProperty, TimeThatPassesChangesNothing, ()) {
  ShrinkingDice dice;
  const std::vector<SeenEvent> events = random_events(dice);
  const FollowSettings settings = uncut(random_settings(dice));  // where schedules are cut depends on the time
  const auto before = watt_steps(events, {}, settings, "seed", kNow_s).steps;
  const double later_s = kNow_s + dice.roll(0, 14) * 3600;  // the same day
  const auto after = watt_steps(events, {}, settings, "seed", later_s).steps;
  RC_ASSERT(steps_from(later_s, before) == after);
}

/// Some values, or all payloads of some intervals, or the event beside its times.
void damage(Dice& dice, SeenEvent& seen) {
  if (dice.one_in(3)) {
    seen.update = UnreadUpdate{seen.event, seen.now_means_s};
    seen.update->event.unread = UnreadPart{"damaged", dice.one_in(2), true};
    return;
  }
  for (EventInterval& interval : seen.event.intervals) {
    if (dice.one_in(4)) {
      interval.unread = "damaged";
      interval.payloads.clear();
    }
    for (EventPayload& payload : interval.payloads) {
      for (auto& value : payload.values) {
        if (dice.one_in(3)) value.reset();
      }
    }
  }
}

RC_GTEST_PROP(WattStepsProperty, WhatCannotBeReadNeverRaisesALimit, ()) {
  ShrinkingDice dice;
  std::vector<SeenEvent> events = random_events(dice);
  if (events.empty()) events.push_back(random_event(dice, 0));
  const FollowSettings settings = uncut(random_settings(dice));
  const auto before = watt_steps(events, {}, settings, "seed", kNow_s).steps;
  FollowSettings no_default = settings;
  no_default.default_limit.reset();
  SeenEvent& damaged = events[static_cast<std::size_t>(dice.roll(0, static_cast<int>(events.size()) - 1))];
  const auto own = watt_steps({&damaged, 1}, {}, no_default, "seed", kNow_s).steps;
  damage(dice, damaged);
  const auto after = watt_steps(events, {}, settings, "seed", kNow_s, {{damaged.event.id, own}}).steps;
  for (int k = 0; k < 40; ++k) {
    const double at_s = kNow_s + dice.roll(0, static_cast<int>(kWatched_s));
    if (is_clear(before, at_s) && is_clear(after, at_s)) RC_ASSERT(limit_at(after, at_s) <= limit_at(before, at_s));
  }
}

RC_GTEST_PROP(WattStepsProperty, RandomShiftsAreWithinOneAndStay, ()) {
  ShrinkingDice dice;
  const std::string event = "event-" + std::to_string(dice.roll(0, 1000000));
  const double shift = random_shift("client", event, 0);
  RC_ASSERT(shift >= -1 && shift <= 1);
  RC_ASSERT(shift == random_shift("client", event, 0));
  RC_ASSERT(shift != random_shift("another", event, 0));
}

}  // namespace
}  // namespace perseus::openadr
