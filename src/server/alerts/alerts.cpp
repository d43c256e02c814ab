#include "server/alerts/alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace perseus::alerts {
namespace {

using jobs::Alert;
using jobs::AlertKind;

// Above the first ratio, the condition begins; below the second, it ends.
constexpr double kLateBegins = 1.03, kLateEnds = 1.02;
constexpr double kPowerBegins = 1.01, kPowerEnds = 1;
constexpr double kSiteBegins = 1.001, kSiteEnds = 1 + 1e-6;
/// The server ends a window by itself after one to ten minutes, longer only after many iterations at the highest clock.
constexpr double kWindowStuck_s = 1800;

enum class Level : unsigned char { gone, between, holds };

/// What a rule says of a job now.
struct Verdict {
  Level level = Level::gone;
  std::string text = {};
  bool at_once = false;                          ///< it cannot be a passing state
  std::optional<double> since_s = std::nullopt;  ///< where the job's log says it
};

Level level_of(double ratio, double begins, double ends) {
  return ratio > begins ? Level::holds : ratio > ends ? Level::between : Level::gone;
}

Verdict profiling_stuck(const AlertFacts& facts, double now_s) {
  if (!facts.profiling_failed.empty()) return {Level::holds, "profiling has failed: " + facts.profiling_failed, true};
  if (!facts.window_since_s) return {};
  if (facts.windows_overdue > 0) {
    return {Level::holds, "a profiling window ended without the reports of all ranks", true};
  }
  const double age_s = now_s - *facts.window_since_s;
  if (age_s <= kWindowStuck_s) return {};
  return {Level::holds, fmt::format("a profiling window has had no results for {:.0f} minutes", age_s / 60), true,
          *facts.window_since_s};
}

Verdict no_permission(const AlertFacts& facts, double /*now_s*/) {
  if (facts.without_permission == 0) return {};
  return {Level::holds, fmt::format("{} of its ranks cannot set {}{}{}", facts.without_permission,
                                    facts.without_permission == 1 ? "its clock" : "their clocks",
                                    facts.permission_reason.empty() ? "" : ": ", facts.permission_reason)};
}

Verdict plan_not_kept(const AlertFacts& facts, double /*now_s*/) {
  if (!facts.dropped.empty()) return {Level::holds, facts.dropped, true};
  if (!facts.planned || !facts.measured || !(*facts.planned > Seconds(0))) return {};
  return {level_of(*facts.measured / *facts.planned, kLateBegins, kLateEnds),
          fmt::format("iterations take {:.4g} s; planned: {:.4g} s", facts.measured->value(), facts.planned->value())};
}

Verdict over_power(const AlertFacts& facts, double /*now_s*/) {
  if (!facts.power || !facts.cap || !(*facts.cap > Watts(0))) return {};
  return {level_of(*facts.power / *facts.cap, kPowerBegins, kPowerEnds),
          fmt::format("the job draws {:.4g} kW{}; its power cap: {:.4g} kW", facts.power->value() / 1000,
                      facts.power_measured ? "" : " (est.)", facts.cap->value() / 1000)};
}

Verdict site_over_limit(const AlertFacts& facts, double /*now_s*/) {
  const auto ratio = [](std::optional<Watts> power, std::optional<Watts> limit) {
    if (!power || !limit) return 0.0;
    return *limit > Watts(0) ? *power / *limit : *power > Watts(0) ? kPowerBegins : 0.0;
  };
  if (facts.meter_refused) {
    return {Level::holds,
            fmt::format("the meter reads {:.4g} kW, which cannot be true: the reading is refused",
                        facts.meter_refused->value() / 1000),
            true};
  }
  const double metered = ratio(facts.metered, facts.metered_limit), counted = ratio(facts.counted, facts.limit);
  const Level level = level_of(std::max(metered, counted), kSiteBegins, kSiteEnds);
  if (metered > counted) {
    return {level, fmt::format("the meter reads {:.4g} kW; the limit: {:.4g} kW", facts.metered->value() / 1000,
                               facts.metered_limit->value() / 1000)};
  }
  return {level, facts.counted && facts.limit
                     ? fmt::format("its jobs may draw {:.4g} kW; the limit leaves {:.4g} kW for accelerators",
                                   facts.counted->value() / 1000, facts.limit->value() / 1000)
                     : std::string()};
}

Verdict watts_missing(const AlertFacts& facts, double /*now_s*/) {
  if (facts.missing < Watts(1)) return {};
  return {Level::holds,
          fmt::format("{:.4g} kW are missing for the least rates of its jobs and for what no grant controls",
                      facts.missing.value() / 1000)};
}

Verdict limits_unread(const AlertFacts& facts, double /*now_s*/) {
  if (facts.limits_unread.empty()) return {};
  return {Level::holds, facts.limits_unread + "; the least limit that was known holds", true};
}

Verdict job_silent(const AlertFacts& facts, double now_s) {
  if (!facts.silent_since_s) return {};
  const std::string held =
      facts.held ? fmt::format(" and it still counts as {:.4g} kW", facts.held->value() / 1000) : "";
  const double for_s = now_s - *facts.silent_since_s;
  if (!facts.silent_ranks.empty()) {
    return {Level::holds,
            fmt::format("{}, for {:.0f} s: no iteration ends without it{}; restart it, or: perseus job finish {}",
                        facts.silent_ranks, for_s, held, facts.job),
            false, *facts.silent_since_s};
  }
  return {Level::holds,
          fmt::format("no rank has called for {:.0f} s{}; if the job has ended: perseus job finish {}", for_s, held,
                      facts.job),
          false, *facts.silent_since_s};
}

struct Rule {
  AlertKind kind;
  Verdict (*verdict)(const AlertFacts&, double now_s);
};
constexpr std::array<Rule, jobs::kNumAlertKinds> kRules{{
    {AlertKind::profiling_stuck, profiling_stuck},
    {AlertKind::no_permission, no_permission},
    {AlertKind::plan_not_kept, plan_not_kept},
    {AlertKind::over_power, over_power},
    {AlertKind::site_over_limit, site_over_limit},
    {AlertKind::watts_missing, watts_missing},
    {AlertKind::limits_unread, limits_unread},
    {AlertKind::job_silent, job_silent},
}};
static_assert(jobs::follow_alert_kinds(kRules));

}  // namespace

bool Alerts::Place::operator<(const Place& other) const {
  return std::tie(other.raised_s, job, kind) < std::tie(raised_s, other.job, other.kind);
}

void Alerts::look(const AlertFacts& facts, double now_s) {
  for (const Rule& rule : kRules) look_at(facts, rule.kind, now_s);
}

void Alerts::look_at(const AlertFacts& facts, AlertKind kind, double now_s) {
  Verdict verdict = kRules[static_cast<std::size_t>(kind)].verdict(facts, now_s);
  const Key key(facts.job, kind);
  const auto known = watched_.find(key);
  if (known == watched_.end() && verdict.level != Level::holds) return;
  Watched& watched = known == watched_.end() ? watched_[key] : known->second;
  if (watched.alert) {
    if (verdict.level == Level::holds) watched.alert->text = std::move(verdict.text);
    if (verdict.level != Level::gone) {
      watched.gone_s.reset();
      return;
    }
    if (!watched.gone_s) watched.gone_s = now_s;
    if (now_s - *watched.gone_s < after_s_) return;
    resolve(watched, now_s);
    watched_.erase(key);
    return;
  }
  if (verdict.level != Level::holds) {
    watched_.erase(key);
    return;
  }
  if (verdict.since_s || !watched.begun_s) watched.begun_s = verdict.since_s.value_or(now_s);
  if (!verdict.at_once && now_s - *watched.begun_s < after_s_) return;
  raise(facts, kind, std::move(verdict.text), watched, now_s);
}

void Alerts::raise(const AlertFacts& facts, AlertKind kind, std::string text, Watched& watched, double now_s) {
  watched.alert = Alert{kind, facts.job, facts.name, std::move(text), *watched.begun_s, now_s, std::nullopt};
  order_.insert({now_s, facts.job, kind});
  ++counts_[static_cast<std::size_t>(kind)];
  sink_.changed(*watched.alert);
}

void Alerts::resolve(Watched& watched, double now_s) {
  Alert& alert = *watched.alert;
  order_.erase({alert.raised_s, alert.job, alert.kind});
  --counts_[static_cast<std::size_t>(alert.kind)];
  alert.resolved_s = now_s;
  resolved_.push_front(std::move(alert));
  watched.alert.reset();
  if (resolved_.size() > kMostResolved) resolved_.pop_back();
  sink_.changed(resolved_.front());
}

void Alerts::job_over(const std::string& job, double now_s) {
  auto at = watched_.lower_bound({job, AlertKind{}});
  while (at != watched_.end() && at->first.first == job) {
    if (at->second.alert) resolve(at->second, now_s);
    at = watched_.erase(at);
  }
}

Alerts::Page Alerts::page(const Query& query) const {
  Page page;
  std::optional<Place> last;
  for (auto at = query.after ? order_.upper_bound(*query.after) : order_.begin(); at != order_.end(); ++at) {
    const Alert& alert = *watched_.at({at->job, at->kind}).alert;
    if (query.wanted && !query.wanted(alert)) continue;
    if (page.alerts.size() == query.limit) {
      page.next = last;
      break;
    }
    page.alerts.push_back(&alert);
    last = *at;
  }
  return page;
}

std::vector<std::string> Alerts::jobs_with_alerts() const {
  std::vector<std::string> jobs;
  for (const auto& [key, watched] : watched_) {
    if (jobs.empty() || jobs.back() != key.first) jobs.push_back(key.first);
  }
  return jobs;
}

std::string format_alert_cursor(const Alerts::Place& place) {
  return views::ListCursor{place.raised_s, {std::string(name_of(place.kind)), place.job}}.text();
}

std::optional<Alerts::Place> parse_alert_cursor(std::string_view text) {
  auto cursor = views::ListCursor::parse(text, 2);
  if (!cursor) return std::nullopt;
  const auto kind = jobs::alert_kind_of(cursor->names[0]);
  if (!kind) return std::nullopt;
  return Alerts::Place{cursor->time_s, std::move(cursor->names[1]), *kind};
}

}  // namespace perseus::alerts
