#include "training/client/server_clock.h"

#include <algorithm>
#include <cmath>

namespace perseus::client {

void ServerClock::answered(const Answered& answer) {
  if (!answer.sent) return;
  const auto [server_s, held_s] = *answer.sent;
  const double call_drift_s = kDrift * (answer.read_s - answer.asked_s);  // of `held_s` too
  Bounds now{answer.asked_s + held_s - server_s - call_drift_s, answer.read_s - server_s + call_drift_s, answer.read_s};
  if (!std::isfinite(now.from_s) || !(held_s >= 0) || !(now.from_s <= now.to_s)) return;
  if (bounds_) {
    const double drift_s = kDrift * std::max(now.at_s - bounds_->at_s, 0.0);
    const double from_s = std::max(now.from_s, bounds_->from_s - drift_s);
    const double to_s = std::min(now.to_s, bounds_->to_s + drift_s);
    if (from_s <= to_s) now.from_s = from_s, now.to_s = to_s;
  }
  bounds_ = now;
}

std::optional<double> ServerClock::earliest(double at_s) const {
  return bounds_ ? std::optional(at_s + bounds_->from_s) : std::nullopt;
}

}  // namespace perseus::client
