// The rules of alerts, and which alerts are raised.
//
// Problem: a condition that comes and goes around its limit must not raise an alert each time.
// Input:   facts of a job, looked at again and again; the time.
// Output:  an alert once its condition has held for `after_s`, or at once where a delay tells nothing more. It is
//          resolved once the condition has been gone for `after_s`, or the job has ended. Between the limits at which
//          a condition begins and ends, an alert stays as it is. AlertSink gets each change once.
// Errors:  none.
// Cost:    O(log alerts) per look. Resolved alerts are kept up to kMostResolved.
// Threads: io thread; no clock of its own.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "server/jobs/alert.h"
#include "server/views/list_cursor.h"

namespace perseus::alerts {

/// What the rules look at, of one live job, or of a domain of the site.
struct AlertFacts {
  std::string job, name;
  std::optional<double> window_since_s;  ///< when the last profiling window was handed out; nothing: none is under way
  int windows_overdue = 0;               ///< consecutive ones that ended without all results
  std::string profiling_failed;          ///< why; empty: it has not
  std::int64_t without_permission = 0;   ///< ranks that cannot set their clocks
  std::string permission_reason;         ///< of the first of them
  std::string dropped;                   ///< sentence on a plan that a rank dropped; empty: none
  std::optional<Seconds> planned, measured;  ///< time of an iteration under the plan
  std::optional<Watts> power, cap;           ///< of the whole job; its power_cap policy
  bool power_measured = false;
  std::optional<Watts> counted, limit;          ///< of a domain's accelerators
  std::optional<Watts> metered, metered_limit;  ///< of a domain, as metered
  std::optional<Watts> meter_refused;           ///< the last reading, which cannot be true
  Watts missing;                                ///< of a domain
  std::string limits_unread;                    ///< of a domain: which, and what is allowed; empty: none
  std::optional<double> silent_since_s;         ///< of a job
  std::string silent_ranks;                     ///< of a job: which, while others call; empty: none
  std::optional<Watts> held;  ///< what a silent job, or one with silent ranks, counts as under the limits of the site
};

/// Gets each alert as it is raised and resolved.
class AlertSink {
 public:
  virtual void changed(const jobs::Alert& alert) = 0;

 protected:
  ~AlertSink() = default;
};

class Alerts {
 public:
  static constexpr std::size_t kMostResolved = 200;

  /// A place in the order: the alert raised last comes first.
  struct Place {
    double raised_s = 0;
    std::string job;
    jobs::AlertKind kind{};
    bool operator<(const Place& other) const;
  };
  using Query = views::ListQuery<Place, jobs::Alert>;
  struct Page {
    std::vector<const jobs::Alert*> alerts;  ///< valid until the next change
    std::optional<Place> next;               ///< the next page starts after it; nothing: no more alerts
  };

  Alerts(double after_s, AlertSink& sink) : after_s_(after_s), sink_(sink) {}
  void set_after(double after_s) { after_s_ = after_s; }
  [[nodiscard]] double after_s() const { return after_s_; }

  void look(const AlertFacts& facts, double now_s);
  /// The job has ended or is gone: its alerts are resolved.
  void job_over(const std::string& job, double now_s);

  /// Raised alerts.
  [[nodiscard]] Page page(const Query& query) const;
  /// Resolved alerts, the last one first.
  [[nodiscard]] const std::deque<jobs::Alert>& resolved() const { return resolved_; }
  /// Raised alerts by kind.
  [[nodiscard]] const std::array<std::int64_t, jobs::kNumAlertKinds>& counts() const { return counts_; }
  [[nodiscard]] std::vector<std::string> jobs_with_alerts() const;

 private:
  struct Watched {
    std::optional<double> begun_s, gone_s;  ///< since when the condition holds, or has been gone
    std::optional<jobs::Alert> alert;       ///< while raised
  };
  using Key = std::pair<std::string, jobs::AlertKind>;

  void look_at(const AlertFacts& facts, jobs::AlertKind kind, double now_s);
  void raise(const AlertFacts& facts, jobs::AlertKind kind, std::string text, Watched& watched, double now_s);
  void resolve(Watched& watched, double now_s);

  double after_s_;
  AlertSink& sink_;
  std::map<Key, Watched> watched_;  ///< conditions that hold, or whose alert is raised
  std::set<Place> order_;           ///< of raised alerts
  std::deque<jobs::Alert> resolved_;
  std::array<std::int64_t, jobs::kNumAlertKinds> counts_{};
};

/// "1700000000.25,over_power,j_..."
std::string format_alert_cursor(const Alerts::Place& place);
std::optional<Alerts::Place> parse_alert_cursor(std::string_view text);

}  // namespace perseus::alerts
