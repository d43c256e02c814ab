// An alert about a job, or about a domain of the site: a condition that an operator should know.
//
// Output:  describe(): the members of an alert in GET /v1/alerts.
// Threads: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace perseus::jobs {

enum class AlertKind : unsigned char {
  profiling_stuck,  ///< a profiling window gets no results, or profiling has failed
  no_permission,    ///< ranks cannot set their clocks
  plan_not_kept,    ///< iterations take longer than planned, or a rank dropped the plan
  over_power,       ///< the job draws more than its power cap
  site_over_limit,  ///< a domain of the site draws, or may draw, more than its limit
  watts_missing,    ///< a domain of the site lacks watts for the least rates of its jobs
  limits_unread,    ///< a limit for a domain of the site cannot be read; what was known holds
  job_silent,       ///< no rank of the job calls, or some do not while others do: they have ended, or are cut off
};
inline constexpr std::size_t kNumAlertKinds = static_cast<std::size_t>(AlertKind::job_silent) + 1;

struct AlertEntry {
  AlertKind kind;
  std::string_view name;   ///< in the API and on the command line
  std::string_view title;  ///< in deploy/prometheus and in messages of the webhook
};
/// In the order of the enumeration.
inline constexpr std::array<AlertEntry, kNumAlertKinds> kAlertTable{{
    {AlertKind::profiling_stuck, "profiling_stuck", "PerseusProfilingStuck"},
    {AlertKind::no_permission, "no_permission", "PerseusNoPermission"},
    {AlertKind::plan_not_kept, "plan_not_kept", "PerseusPlanNotKept"},
    {AlertKind::over_power, "over_power", "PerseusOverPower"},
    {AlertKind::site_over_limit, "site_over_limit", "PerseusSiteOverLimit"},
    {AlertKind::watts_missing, "watts_missing", "PerseusWattsMissing"},
    {AlertKind::limits_unread, "limits_unread", "PerseusLimitsUnread"},
    {AlertKind::job_silent, "job_silent", "PerseusJobSilent"},
}};
constexpr bool follow_alert_kinds(const auto& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].kind) != i) return false;
  }
  return rows.size() == kNumAlertKinds;
}
static_assert(follow_alert_kinds(kAlertTable));

inline const AlertEntry& entry_of(AlertKind kind) { return kAlertTable[static_cast<std::size_t>(kind)]; }
inline std::string_view name_of(AlertKind kind) { return entry_of(kind).name; }
inline std::optional<AlertKind> alert_kind_of(std::string_view name) {
  for (const AlertEntry& entry : kAlertTable) {
    if (entry.name == name) return entry.kind;
  }
  return std::nullopt;
}
/// "profiling_stuck, ... limits_unread or job_silent", with that word before the last.
inline std::string list_of_alerts(std::string_view before_last) {
  std::string names;
  for (const AlertEntry& entry : kAlertTable) {
    if (!names.empty()) names += entry.kind == kAlertTable.back().kind ? before_last : ", ";
    names += entry.name;
  }
  return names;
}

struct Alert {
  AlertKind kind{};
  std::string job, name;             ///< the job's id and name; of a domain: see job_of_domain(), and its name
  std::string text;                  ///< one sentence for people
  double since_s = 0;                ///< since when the condition holds
  double raised_s = 0;               ///< when the server raised the alert
  std::optional<double> resolved_s;  ///< nothing: it is raised
};

/// In place of a job's id in alerts about a domain of the site; no job has such an id.
inline constexpr std::string_view kDomainPrefix = "site/";
inline std::string job_of_domain(std::string_view domain) { return std::string(kDomainPrefix).append(domain); }
inline bool is_of_domain(const Alert& alert) { return alert.job.starts_with(kDomainPrefix); }

void describe(auto& f, const Alert& alert) {
  f.always("alert", name_of(alert.kind));
  f.always("state", std::string_view(alert.resolved_s ? "resolved" : "raised"));
  if (is_of_domain(alert)) {
    f.always("domain", alert.name);
  } else {
    f.always("job", alert.job);
    f("name", alert.name);
  }
  f.always("text", alert.text);
  f.always("since_s", alert.since_s);
  f.always("raised_at_s", alert.raised_s);
  f("resolved_at_s", alert.resolved_s);
}

}  // namespace perseus::jobs
