#include "server/service/alert_claims.h"

#include <algorithm>
#include <vector>

namespace perseus::service {
namespace {

constexpr double kClaimAgainAfter_s = 5;  ///< the store did not answer
constexpr double kLeastBetween_s = 1;

std::string work_of(const std::pair<std::string, jobs::AlertKind>& key) {
  return "alert/" + key.first + "/" + std::string(name_of(key.second));
}

}  // namespace

void AlertClaims::enable(bool enabled) {
  if (enabled == enabled_) return;
  enabled_ = enabled;
  for (auto& [key, claimed] : entries_) {
    claimed.mine = false;
    claimed.due_s = 0;
  }
  if (!entries_.empty()) wake_at(clock_.now_s());
}

void AlertClaims::changed(const jobs::Alert& alert) {
  const Key key{alert.job, alert.kind};
  const double now_s = clock_.now_s();
  if (!alert.resolved_s) {
    Claimed& claimed = entries_[key];
    claimed.alert = alert;
    claimed.mine = false;
    claimed.due_s = now_s;
    if (enabled_) ask(key, claimed);
    return;
  }
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Claimed& claimed = found->second;
  claimed.alert = alert;
  if (claimed.mine) {
    send(alert);
    claimed.due_s = now_s + kLease_s / 2;
  } else if (!claimed.asking) {
    entries_.erase(found);
  }
}

void AlertClaims::end_if_forgotten(const jobs::Alert& sent) {
  const Key key{sent.job, sent.kind};
  if (!enabled_ || entries_.contains(key)) return;
  store_.claim(work_of(key), owner_, clock_.now_s(), kLease_s,
               [weak = weak_from_this(), key, sent](const Result<bool>& got) {
                 const auto self = weak.lock();
                 if (!self || !got || !*got || self->entries_.contains(key)) return;
                 jobs::Alert ended = sent;
                 ended.resolved_s = self->clock_.now_s();
                 self->send(ended);
                 self->store_.release(work_of(key), self->owner_);
               });
}

void AlertClaims::ask(const Key& key, Claimed& claimed) {
  if (claimed.asking) return;
  claimed.asking = true;
  store_.claim(work_of(key), owner_, clock_.now_s(), kLease_s, [weak = weak_from_this(), key](const Result<bool>& got) {
    if (const auto self = weak.lock()) self->answered(key, got);
  });
}

void AlertClaims::answered(const Key& key, const Result<bool>& got) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Claimed& claimed = found->second;
  const bool was_mine = claimed.mine, over = claimed.alert.resolved_s.has_value();
  const double now_s = clock_.now_s();
  claimed.asking = false;
  claimed.due_s = now_s + (!got ? kClaimAgainAfter_s : over ? kLease_s / 2 : kLease_s / 3);
  if (got) claimed.mine = *got && enabled_;
  wake_at(claimed.due_s);
  if (over && !claimed.mine) {
    entries_.erase(found);
    return;
  }
  if (!claimed.mine || was_mine) return;
  const jobs::Alert alert = claimed.alert;
  jobs::Alert raised = alert;
  raised.resolved_s.reset();
  send(raised);
  if (over) send(alert);
}

void AlertClaims::tick(double now_s) {
  if (!next_s_ || now_s < *next_s_) return;
  next_s_.reset();
  std::vector<Key> due;
  for (const auto& [key, claimed] : entries_) {
    if (claimed.due_s <= now_s) due.push_back(key);
  }
  for (const Key& key : due) {
    Claimed& claimed = entries_.at(key);
    if (claimed.alert.resolved_s) {
      store_.release(work_of(key), owner_);
      entries_.erase(key);
    } else if (enabled_) {
      claimed.due_s = now_s + kLease_s;
      ask(key, claimed);
    }
  }
  std::optional<double> next;
  for (const auto& [key, claimed] : entries_) {
    if (!enabled_ && !claimed.alert.resolved_s) continue;
    if (!next || claimed.due_s < *next) next = claimed.due_s;
  }
  if (next) wake_at(std::max(*next, now_s + kLeastBetween_s));
}

void AlertClaims::wake_at(double time_s) {
  if (next_s_ && *next_s_ <= time_s) return;
  next_s_ = time_s;
  if (earlier_wake) earlier_wake();
}

}  // namespace perseus::service
