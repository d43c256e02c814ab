// Decides which of several servers on one database sends an alert.
//
// Problem: each server raises the alerts of the jobs in its memory, so the same alert is raised at several servers;
//          the receiver must get it once.
// Input:   alerts as this server raises and resolves them.
// Output:  send() with a raised alert if this server gets its claim in the store, and with the same alert once it is
//          resolved here. The claim is renewed while the alert is raised. If the server with the claim ends, another
//          one takes it when the lease is over, and sends the alert again. After its end, the claim stays for half a
//          lease, until the other servers have resolved the alert too.
// Errors:  while the store does not answer, alerts wait.
// Cost:    a claim per raised alert when it is raised, and each third of a lease.
// Threads: io thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "server/jobs/alert.h"
#include "server/service/store_access.h"

namespace perseus::service {

class AlertClaims : public std::enable_shared_from_this<AlertClaims> {
 public:
  static constexpr double kLease_s = 120;

  AlertClaims(std::string owner, StoreAccess& store, const Clock& clock)
      : owner_(std::move(owner)), store_(store), clock_(clock) {}

  /// Without: claims nothing. With it after a time without: claims, and sends, all raised alerts.
  void enable(bool enabled);
  void changed(const jobs::Alert& alert);
  /// Sends the end of an alert that was sent earlier, unless it is raised here, or at the server that has its claim.
  void end_if_forgotten(const jobs::Alert& sent);
  void tick(double now_s);
  [[nodiscard]] std::optional<double> next_wake() const { return next_s_; }

  std::function<void(const jobs::Alert&)> send;
  /// Called whenever next_wake() may have become earlier. May be empty.
  std::function<void()> earlier_wake;

 private:
  using Key = std::pair<std::string, jobs::AlertKind>;
  struct Claimed {
    jobs::Alert alert;  ///< resolved: the claim is released when it is due
    bool mine = false, asking = false;
    double due_s = 0;
  };
  using Entries = std::map<Key, Claimed>;

  void ask(const Key& key, Claimed& claimed);
  void answered(const Key& key, const Result<bool>& got);
  void wake_at(double time_s);

  const std::string owner_;
  StoreAccess& store_;
  const Clock& clock_;
  bool enabled_ = false;
  Entries entries_;
  std::optional<double> next_s_;
};

}  // namespace perseus::service
