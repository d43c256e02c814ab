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
inline constexpr std::size_t kNumAlertKinds = 8;
inline constexpr std::array<std::string_view, kNumAlertKinds> kAlertNames{
    "profiling_stuck", "no_permission", "plan_not_kept", "over_power",
    "site_over_limit", "watts_missing", "limits_unread", "job_silent"};
inline std::string_view name_of(AlertKind kind) { return kAlertNames[static_cast<std::size_t>(kind)]; }

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
