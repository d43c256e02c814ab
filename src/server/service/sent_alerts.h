// The alerts handed to the webhook whose end has not reached the receiver, kept in the store.
//
// Problem: raised alerts are in memory only. If a server stops and a condition ends before it runs again, the receiver
//          would never get the alert's end.
// Input:   note(): each alert handed to the webhook, and each end that the receiver has taken.
// Output:  kBetweenLooks_s after the start, when ranks have called again, and as often later: check() with each alert
//          whose end was not sent. One that is raised somewhere is not forgotten; check() decides that.
// Errors:  a write that fails is not repeated: the end of that alert may be missing. A failed read is repeated.
// Cost:    a blob per alert that has no end.
// Threads: io thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "server/jobs/alert.h"
#include "server/service/store_access.h"

namespace perseus::service {

class SentAlerts : public std::enable_shared_from_this<SentAlerts> {
 public:
  static constexpr double kBetweenLooks_s = 1800;

  SentAlerts(StoreAccess& store, const Clock& clock)
      : store_(store), clock_(clock), next_s_(clock.now_s() + kBetweenLooks_s) {}

  void note(const jobs::Alert& alert);
  void enable(bool enabled) { enabled_ = enabled; }
  void tick(double now_s);
  [[nodiscard]] std::optional<double> next_wake() const { return enabled_ ? std::optional(next_s_) : std::nullopt; }

  std::function<void(const jobs::Alert&)> check;

 private:
  StoreAccess& store_;
  const Clock& clock_;
  bool enabled_ = false;
  double next_s_;
  std::map<std::string, double> raised_s_;  ///< by blob: of the alert in it, as far as this server put it there
};

}  // namespace perseus::service
