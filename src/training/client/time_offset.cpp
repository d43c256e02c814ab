#include "training/client/time_offset.h"

#include <algorithm>
#include <utility>

namespace perseus::client {
namespace {

constexpr double kPeriod_s = 5;
constexpr double kAgree_s = 1e-4, kClose_s = 2e-3;

void insert(auto& highest_first, double value) {
  for (double& one : highest_first) {
    if (value > one) std::swap(value, one);
  }
}

bool agree(const auto& highest_first) {
  return highest_first.back() > -1e299 && highest_first.front() - highest_first.back() < kAgree_s;
}

}  // namespace

TimeOffset::Bounds& TimeOffset::at(double host_s) {
  if (host_s - period_began_s_ > kPeriod_s) {
    bounds_[1] = std::exchange(bounds_[0], Bounds{});
    period_began_s_ = host_s;
  }
  return bounds_[0];
}

void TimeOffset::enqueued(double device_s, double host_s) {
  Bounds& bounds = at(host_s);
  bounds.from_s = std::max(bounds.from_s, host_s - device_s);
}

void TimeOffset::probed(double device_s, double host_s, double done_s) {
  Bounds& bounds = at(host_s);
  insert(bounds.probes_s, host_s - device_s);
  bounds.from_s = std::max(bounds.from_s, host_s - device_s);
  if (done_s >= 0) bounds.to_s = std::min(bounds.to_s, done_s - device_s);
}

void TimeOffset::seen(double device_s, double host_s) {
  Bounds& bounds = bounds_[0];
  bounds.to_s = std::min(bounds.to_s, host_s - device_s);
  bounds.seen = true;
}

TimeOffset::Bounds TimeOffset::both() const {
  Bounds both = bounds_[0];
  both.from_s = std::max(both.from_s, bounds_[1].from_s);
  both.to_s = std::min(both.to_s, bounds_[1].to_s);
  for (const double probe_s : bounds_[1].probes_s) insert(both.probes_s, probe_s);
  both.seen |= bounds_[1].seen;
  return both;
}

double TimeOffset::seconds() const {
  const Bounds bounds = both();
  if (bounds.to_s > 1e299 || agree(bounds.probes_s)) return bounds.from_s;
  return std::max(bounds.from_s, bounds.to_s);
}

bool TimeOffset::known() const {
  const Bounds bounds = both();
  return bounds.seen || agree(bounds.probes_s) || bounds.to_s - bounds.from_s < kClose_s;
}

}  // namespace perseus::client
