// The alerts that the webhook is to send, and those sent whose end has not reached the receiver, kept in the store.
//
// Problem: raised alerts are in memory only. If a server stops and a condition ends before it, or its standby, runs
//          again, the receiver would never get the alert's end.
// Input:   changed(): each alert as it is raised and resolved; delivered(): each end that the receiver has taken.
// Output:  each alert and its end, to the sink. kBetweenLooks_s after it has a receiver, when ranks have called again,
//          and as often later, with the end of each one in the store that is not raised any more.
// Errors:  a write that fails is not repeated: the end of that alert may be missing. A failed read is repeated.
// Cost:    a blob per alert that has no end.
// Threads: io thread.
#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "server/alerts/alerts.h"
#include "server/jobs/alert.h"
#include "server/work/store_access.h"

namespace perseus::alerts {

class SentAlerts {
 public:
  static constexpr double kBetweenLooks_s = 1800;

  SentAlerts(work::StoreAccess& store, const Clock& clock, work::Due& due, AlertSink& sink)
      : store_(store), clock_(clock), sink_(sink), alarm_(due, work::Due::Turn::sent_alerts, *this) {}

  /// Without a receiver: sends nothing. With one after a time without: sends all raised alerts.
  void enable(bool enabled);
  void changed(const jobs::Alert& alert);
  void delivered(const jobs::Alert& end);

 private:
  void raise(const jobs::Alert& alert);
  void look(double now_s);

  work::StoreAccess& store_;
  const Clock& clock_;
  AlertSink& sink_;
  work::AlarmOf<&SentAlerts::look> alarm_;
  bool enabled_ = false;
  std::map<std::string, jobs::Alert> raised_;  ///< by blob
};

}  // namespace perseus::alerts
